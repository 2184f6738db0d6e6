import math

import pytest

from thalweg.experiments.catalogue.coordinator_tree import Parameters, run
from thalweg.experiments.report import write


def test_a_small_tree_grows_stands_churn_and_heals(tmp_path):
    parameters = Parameters(sizes=(24,), churn_percent=(10.0,), churn_s=30)
    report = run(parameters, lambda text, fraction=None: None)
    assert [r["phase"] for r in report.rows] == [
        "grown",
        "at rest",
        "churn 10 %/min",
        "20 % of coordinators lost",
        "root lost",
    ]
    assert all(math.isfinite(r["settled after s"]) for r in report.rows)
    grown = report.rows[0]
    assert grown["joins"] == 23
    assert grown["largest"] <= 11
    write(report, tmp_path)
    assert (tmp_path / "coordinator-tree-repair.svg").exists()


def test_sizes_beyond_the_network_are_refused():
    with pytest.raises(ValueError, match="4,096"):
        Parameters(sizes=(10_000,))
