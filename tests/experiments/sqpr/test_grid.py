import pytest

from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.sqpr.grid import measure, usual_cpu
from thalweg.placement.sqpr.workload import Workload, make_problem

SMALL = Workload(hosts=3, base_streams=10, queries=20)
PLANNERS = {"heuristic": filling("heuristic"), "all": filling("aggregate-host")}


def quiet(text, part=None):
    pass


def test_every_planner_meets_every_workload_on_every_seed():
    grid = measure(2, {"a": SMALL, "b": SMALL}, PLANNERS, quiet)
    assert (grid.workloads, grid.planners, grid.seeds) == (["a", "b"], ["heuristic", "all"], 2)
    assert grid.admitted("a", "heuristic") == grid.admitted("b", "heuristic")
    assert grid.across(["a", "b"], "all") == [[x, x] for x in grid.admitted("a", "all")]


def test_ratios_are_seed_by_seed():
    grid = measure(3, {"a": SMALL}, PLANNERS, quiet)
    mine, theirs = grid.admitted("a", "heuristic"), grid.admitted("a", "all")
    assert grid.ratios("a", "heuristic", "all") == [
        m / t for m, t in zip(mine, theirs, strict=True)
    ]
    (row, _) = grid.rows("workload", ("all",))
    assert row["of all"] == pytest.approx(sum(grid.ratios("a", "heuristic", "all")) / 3)
    assert (row["least"], row["most"]) == (min(mine), max(mine))


def test_an_interrupted_measurement_gives_the_seeds_that_are_complete():
    calls = []

    def fails_in_the_third_seed(problem, tell):
        calls.append(problem)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return PLANNERS["heuristic"](problem, tell)

    grid = measure(5, {"a": SMALL}, {"planner": fails_in_the_third_seed}, quiet)
    assert grid.seeds == 2


def test_interrupted_in_the_first_seed_there_is_nothing_to_report():
    def fails(problem, tell):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(5, {"a": SMALL}, {"planner": fails}, quiet)


def test_the_usual_cpu_is_the_mean_over_seeds():
    each = [make_problem(SMALL, seed).hosts.cpu[0] for seed in range(2)]
    assert usual_cpu(SMALL, 2) == pytest.approx(sum(each) / 2)
