from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from bench import comparison, many_queries
from bench.comparison import Comparison
from bench.many_queries import Parameters
from bench.systems.outcome import Outcome, Unable
from thalweg.engine.shared.tick.executors import InProcess

TINY = Parameters(
    queries=(1, 12),
    peers=("none",),
    events=400,
    ticks=4,
    windows_s=(1, 2),
    pairs=1,
    distinct=3,
    share=0.3,
)


def quiet(text: str, fraction: float | None = None) -> None:
    pass


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(sparkContext=None)
    monkeypatch.setattr(many_queries, "spark_session", lambda master: context)
    monkeypatch.setattr(many_queries, "warmed", nullcontext)
    monkeypatch.setattr(comparison, "OnSpark", lambda _: InProcess())


@pytest.mark.usefixtures("without_spark")
def test_a_run_compares_systems_and_reports_goals(tmp_path: Path):
    report = many_queries.run(replace(TINY, few_rows=0.3), quiet)
    assert {(r["system"], r["queries"]) for r in report.rows if r["how"] == "measured"} == {
        ("shared", 1),
        ("unshared", 1),
        ("shared", 12),
        ("unshared", 12),
    }
    assert all(r["same results"] for r in report.rows)
    assert all(r["rows out"] > 0 for r in report.rows)
    names = [g.name for g in report.goals]
    assert names[0] == "runs with other results than shared"
    assert report.goals[0].met
    assert "one query: tick with sharing over without" in names
    assert "3 queries without overlap: CPU with sharing over without" in names


@pytest.mark.usefixtures("without_spark")
def test_many_queries_with_few_results_are_compared_with_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(many_queries, "MANY", 12)
    report = many_queries.run(replace(TINY, pairs=0, unshared_up_to=0), quiet)
    few = [r for r in report.rows if r["how"] == "few results"]
    assert [r["queries"] for r in few] == [1, 12]
    assert any("few results, median tick over one query's" in g.name for g in report.goals)
    assert any("12 queries of a few shapes, median tick" in g.name for g in report.goals)


def made(seconds: float, rows: int = 5) -> Outcome:
    said = pl.DataFrame({"query": ["q0"], "rows": [rows], "items": [1]})
    return Outcome(0.5, seconds, seconds, said, ticks=(1.0, 0.5))


class Scripted(Comparison):
    """Systems with given outcomes: what is done with them is the test."""

    def __init__(self, parameters: Parameters, outcomes: dict) -> None:
        super().__init__(parameters, quiet, Path())
        self.outcomes = outcomes

    def outcome(self, system, standing):
        found = self.outcomes[system, len(standing)]
        if isinstance(found, Unable):
            raise found
        return found


def scripted(peers: tuple[str, ...], limit_s: float, **outcomes: object) -> Scripted:
    queries = (1, 8, 1_000)
    told = {(s, n): o for s, of in outcomes.items() for n, o in zip(queries, of, strict=False)}
    parameters = Parameters(queries=queries, peers=peers, limit_s=limit_s, unshared_up_to=0)
    bench = Scripted(parameters, told)
    bench.compare()
    return bench


def test_a_peer_goes_as_far_as_its_time_lets_it_and_the_rest_is_extrapolated():
    bench = scripted(
        ("native",), 100.0, shared=[made(2), made(2), made(3)], native=[made(10), made(24)]
    )
    (row,) = [r for r in bench.rows if r["system"] == "native" and r["how"] != "measured"]
    assert row["how"] == "extrapolated from 8"
    assert row["seconds"] == pytest.approx(24 + 992 * 2)
    goals = {g.name: g for g in many_queries._goals(bench.parameters, bench)}
    goal = goals["query-events/s over native, 1,000 queries (extrapolated; measured at 8: 12 x)"]
    assert goal.measured == pytest.approx((24 + 992 * 2) / 3)
    assert goal.goal == 1_000


def test_a_peer_that_gets_there_is_compared_as_measured():
    bench = scripted(("flink",), 1e6, shared=[made(2)] * 3, flink=[made(2), made(4), made(800)])
    (goal,) = [g for g in many_queries._goals(bench.parameters, bench) if "flink" in g.name]
    assert (goal.name, goal.measured) == ("query-events/s over flink, 1,000 queries", 400)
    assert (goal.goal, goal.met) == (300, True)


def test_one_run_alone_is_no_ground_to_give_up():
    bench = scripted(
        ("native",), 100.0, shared=[made(2)] * 3, native=[made(90), made(90), made(99)]
    )
    assert all(r["how"] == "measured" for r in bench.rows)


def test_a_peer_that_fails_is_told_and_not_tried_again():
    bench = scripted(
        ("native", "flink"),
        1e6,
        shared=[made(2), made(2), made(3)],
        native=[made(10), Unable("stopped after 60 s")],
        flink=[Unable("PyFlink is not installed: run `make flink`")],
    )
    assert bench.notes == [
        "flink, 1 queries: PyFlink is not installed: run `make flink`.",
        "native, 8 queries: stopped after 60 s.",
    ]
    # One run does not make a line.
    assert [r["queries"] for r in bench.rows if r["system"] == "native"] == [1]
    assert not [r for r in bench.rows if r["system"] == "flink"]


def test_other_results_miss_the_first_goal():
    bench = scripted(
        ("native",),
        1e6,
        shared=[made(2)] * 3,
        native=[made(2), made(2, rows=4), made(2)],
    )
    goal = many_queries._goals(bench.parameters, bench)[0]
    assert (goal.measured, goal.met) == (1, False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"peers": ("storm",)}, "no peer storm"),
        ({"overlap": 1.5}, "from 0 to 1"),
        ({"queries": (0, 8)}, "at least one query"),
    ],
)
def test_wrong_parameters_are_refused(change: dict, says: str):
    with pytest.raises(ValueError, match=says):
        replace(TINY, **change)
