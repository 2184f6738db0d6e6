"""Every SQPR experiment with the smallest parameters that mean something."""

import json
from dataclasses import replace
from functools import cache

import pytest

from thalweg.experiments.registry import load
from thalweg.experiments.report import as_markdown, write

TINY = {"seeds": 2, "hosts": 3, "base_streams": 12, "queries": 30, "work_limit": 15}
CLUSTER = {"seeds": 2, "hosts": 3, "base_streams": 12, "joins_per_host": 3, "work_limit": 15}
SMALLEST = {
    "sqpr-admission": {**TINY, "every": 10, "work_limits": (0, 15)},
    "sqpr-batching": {**TINY, "every": 10, "batches": (1, 4)},
    "sqpr-overlap": {**TINY, "base_streams": (6, 12), "usual_streams": 12, "zipf": (0.0, 1.0)},
    "sqpr-hosts": {**TINY, "hosts": (2, 4), "queries_per_host": 8},
    "sqpr-resources": {**TINY, "cpu_shares": (0.3, 0.6)},
    "sqpr-complexity": {**TINY, "ways": (2, 3)},
    "sqpr-time": {
        **TINY,
        "hosts": (2, 4),
        "ways": (2, 3),
        "ways_on_hosts": 3,
        "queries_per_host": 8,
    },
    "sqpr-soda": {**CLUSTER, "queries": 30, "epoch": 10},
    "sqpr-reuse": TINY,
    "sqpr-milp": {
        "seeds": 1,
        "hosts": (3,),
        "streams_per_host": 4,
        "queries_per_host": 6,
        "seconds": 1.0,
        "longer": (1.0,),
        "from_saturation": 3,
        "batches": (2,),
        "batch_hosts": 3,
        "timed_hosts": (2, 3),
        "timed_ways": (2, 3),
        "timed_ways_on": 3,
        "timed": 2,
    },
    "sqpr-load": {**CLUSTER, "submitted": (10, 20), "epoch": 10},
}


@cache
def report_of(name):
    module = load(name)
    usual = module.Parameters()
    known = {field: value for field, value in SMALLEST[name].items() if hasattr(usual, field)}
    heard = []
    report = module.run(replace(usual, **known), lambda text, part=None: heard.append(part))
    return report, heard


@pytest.mark.parametrize("name", SMALLEST)
def test_an_experiment_tells_what_it_found_beside_the_source(name, tmp_path):
    report, heard = report_of(name)
    assert report.name == name
    assert report.rows
    assert report.beside
    assert report.figures
    assert heard == sorted(heard)
    assert 0 <= heard[0] < heard[-1] <= 1
    assert json.loads(report.as_json())["rows"]
    write(report, tmp_path)
    assert len(list(tmp_path.glob("*.svg"))) == len(report.figures)
    assert "## Beside the source" in as_markdown(report)


def test_curves_never_fall_and_nobody_exceeds_the_bound():
    report, _ = report_of("sqpr-admission")
    lines = {}
    for row in report.details["curves"]:
        key = row["network"], row["planner"], row["seed"]
        lines.setdefault(key, []).append((row["submitted"], row["admitted"]))
    for (network, planner, seed), line in lines.items():
        assert line == sorted(line)
        assert all(admitted <= submitted for submitted, admitted in line)
        if planner.startswith(("sqpr", "heuristic")):
            most = lines[network, "LP bound", seed][-1][1]
            assert line[-1][1] <= most + 1e-6


def test_the_goals_of_admission_are_those_of_both_networks():
    names = [goal.name for goal in report_of("sqpr-admission")[0].goals]
    for network in ("100 Mbps", "1000 Mbps"):
        assert f"{network}: sqpr, no forecast over heuristic, least" in names
        assert f"{network}: sqpr, limit 15 over heuristic, forecast, mean" in names
    assert names[-1] == "peak memory"


@pytest.mark.parametrize("name", SMALLEST)
def test_every_page_has_a_line_without_the_forecast(name):
    told = json.dumps(report_of(name)[0].rows)
    assert "no forecast" in told or '"rule": "none"' in told


def test_the_same_seed_gives_the_same_figures():
    again, _ = report_of.__wrapped__("sqpr-admission")
    before, _ = report_of("sqpr-admission")
    assert again.details == before.details
