"""All strategies side by side, on problems as small as they can be."""

import pytest

from thalweg.experiments.catalogue.placement_strategies import CENTRE, WIDE, Parameters, run

TINY = Parameters(seeds=2, growth=(6,), small_queries=4, exact_nodes=500)


@pytest.fixture(scope="module")
def rows():
    return run(TINY, lambda text, part=None: None).details["seeds"]


def of(rows, problem, seed):
    return {
        r["strategy"]: r
        for r in rows
        if (r["problem"], r["queries"], r["seed"]) == (problem, TINY.small_queries, seed)
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_nobody_admits_more_than_a_proven_optimum(rows, seed):
    found = of(rows, CENTRE, seed)
    assert found["milp"]["proven"]
    assert max(r["admitted"] for r in found.values()) == found["milp"]["admitted"]


@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_wide_area_with_plenty_all_are_admitted_and_the_optimum_needs_no_more(rows, seed):
    found = of(rows, WIDE, seed)
    assert {r["admitted"] for r in found.values()} == {TINY.small_queries}
    trees = ("proxy", "edge", "edge+", "in-network")
    best = found["optimal"]["Mbit in flight"]
    assert all(found[name]["Mbit in flight"] >= best - 1e-9 for name in trees)


@pytest.mark.parametrize("seed", [0, 1])
def test_cosmos_moves_streams_too_and_its_ways_are_counted(rows, seed):
    cosmos = of(rows, WIDE, seed)["cosmos"]
    assert cosmos["admitted"] == TINY.small_queries
    assert cosmos["Mbit in flight"] > 0


def test_who_would_take_too_long_is_left_out_and_its_line_ends():
    hasty = Parameters(seeds=1, growth=(6,), small_queries=4, exact_nodes=500, longest_s=0.0)
    report = run(hasty, lambda text, part=None: None)
    assert {r["queries"] for r in report.details["seeds"]} == {hasty.small_queries}
    assert [b.here for b in report.beside if "growth" in b.figure] == ["time a query: "] * 2
