"""The experiments on SAND run in small, and say what their tables say."""

from __future__ import annotations

import pytest

from thalweg.experiments.catalogue import (
    sand_distributed,
    sand_drift,
    sand_placement,
    sand_scope,
    sand_selectivity,
    sand_sources,
    sand_trees,
)


def silent(text: str, fraction: float | None = None) -> None:
    assert fraction is None or 0 <= fraction <= 1


def test_every_plan_is_compared_with_the_optimum_of_the_same_trees() -> None:
    small = sand_placement.Parameters(
        seeds=2, trees=2, nodes=150, depths=(3,), verified=2, timed=1, fewer=(1,), shared=2
    )
    report = sand_placement.run(small, silent)
    rows = {(r["places"], r["bound"], r["strategy"]): r for r in report.rows}
    for (places, bound, _), row in rows.items():
        if "streams a host" in places:
            continue
        best = rows[places, bound, "optimal"]
        assert row["trees"] == best["trees"]
        assert row["over optimum"] == pytest.approx(
            row["bandwidth ratio"] / best["bandwidth ratio"]
        )
        assert row["over optimum"] >= 1 - 1e-9
        assert row["bandwidth ratio"] <= 1 + 1e-9 or row["strategy"] == "edge"
    for places in ("star", "uniform", "cluster"):
        assert {b for p, b, _ in rows if p == places} >= {"none", "1.2 × direct", "3 × direct"}
        tight = [r for (p, b, _), r in rows.items() if p == places and b == "1.2 × direct"]
        assert all(r["stretch"] <= 1.2 + 1e-6 for r in tight)
    assert len(report.goals) == 5
    assert all("nan" not in b.here for b in report.beside)
    assert {b.figure for b in report.beside} >= {"6", "7"}


def test_sources_move_apart() -> None:
    small = sand_sources.Parameters(seeds=1, trees=3, nodes=200, depths=(3,), asd=(0.15, 0.4))
    report = sand_sources.run(small, silent)
    assert len(report.rows) == 2 * 4 * 3
    near, far = (
        [r["bandwidth ratio"] for r in report.rows if r["ASD"] == asd] for asd in small.asd
    )
    assert sum(near) < sum(far)
    assert len(report.beside) == 3  # as they move apart; slopes by either kind of bound


def test_trees_of_three_shapes_keep_their_bounds() -> None:
    small = sand_trees.Parameters(
        seeds=1, trees=2, nodes=200, depth=2, deeper=3, wider=3, bounds=(1.0, 2.0)
    )
    report = sand_trees.run(small, silent)
    assert {r["trees"] for r in report.rows} == {"binary", "deeper", "wider"}
    for row in report.rows:
        assert row["stretch"] <= row["bound, × direct"] + 1e-6
    assert {b.figure for b in report.beside} == {"9", "10"}
    with pytest.raises(ValueError, match="places are star, uniform, cluster, not ring"):
        sand_trees.Parameters(places="ring")


def test_operators_stand_somewhere_at_every_selectivity() -> None:
    small = sand_selectivity.Parameters(
        seeds=1, trees=3, nodes=200, depths=(3,), selectivities=(0.25, 1.0)
    )
    report = sand_selectivity.run(small, silent)
    for row in report.rows:
        for shares in (
            ("at the proxy", "in the network", "at sources"),
            ("in the proxy's domain", "in a source's domain", "in other domains"),
        ):
            assert sum(row[s] for s in shares) == pytest.approx(1)
            assert all(-1e-9 <= row[s] <= 1 for s in shares)
        assert row["in the proxy's domain"] >= row["at the proxy"]
    ratio = {(r["places"], r["selectivity up to"]): r["bandwidth ratio"] for r in report.rows}
    for places in ("cluster", "star"):
        assert ratio[places, 0.25] < ratio[places, 1.0]


@pytest.mark.parametrize("experiment", [sand_placement, sand_sources, sand_trees, sand_selectivity])
def test_quick_parameters_are_smaller(experiment) -> None:
    full, quick = experiment.Parameters(), experiment.Parameters.quick()
    assert quick.seeds * quick.trees < full.seeds * full.trees / 10


def test_following_costs_less_than_staying_and_moves_less_than_the_optimum() -> None:
    small = sand_drift.Parameters(
        seeds=1, peers=24, queries=2, steps=4, step_s=40.0, remeasure_s=10.0, rate_change=0.8
    )
    report = sand_drift.run(small, silent)
    rows = {row["placement"]: row for row in report.rows}
    assert rows["placed once"]["moves of an operator, an hour"] == 0
    late = "second half, mean"
    assert 1 <= rows["hysteresis of 0.1"][late] <= rows["placed once"][late]
    assert all(row[late] >= 1 - 1e-9 for row in report.rows)


def test_the_formula_for_scope_has_an_exponent_that_draws_do_not_bear_out() -> None:
    small = sand_scope.Parameters(seeds=1, trees=4, draws=4_000, nodes=200, depths=(1, 2))
    report = sand_scope.run(small, silent)
    assert sand_scope.printed(2, 1) == pytest.approx(8 / 9)
    first = report.rows[0]
    assert first["drawn by its model"] == pytest.approx(2 / 3, abs=0.03)
    assert first["P_S as printed"] - first["drawn by its model"] > 0.15
    with pytest.raises(ValueError, match="places are"):
        sand_scope.Parameters(places="nowhere")


def test_the_protocol_comes_near_to_the_centralised_placers() -> None:
    small = sand_distributed.Parameters(
        seeds=1,
        trees=2,
        nodes=200,
        depths=(3,),
        asd=(0.2, 0.4),
        bounds=(2.0,),
        selectivities=(1.0,),
    )
    report = sand_distributed.run(small, silent)
    by_case = {
        (r["figure"], r["at"], r["bound"], r["strategy"], r["how"]): r["bandwidth ratio"]
        for r in report.rows
    }
    for case, ratio in by_case.items():
        if case[-1] == "distributed":
            assert ratio < 1.4 * by_case[(*case[:-1], "centralised")]
    assert {r["figure"] for r in report.rows} == {"6, 7", "8", "9, 10", "11, 12"}
