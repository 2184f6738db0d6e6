"""The experiments about trees run in small, and report what they promise."""

from __future__ import annotations

from typing import Any

from thalweg.experiments.catalogue import (
    cosmos_trees_dynamic,
    cosmos_trees_many,
    cosmos_trees_static,
    cosmos_trees_time,
)
from thalweg.experiments.report import Report, write


def ran(module: Any, **changes: Any) -> Report:
    return module.run(module.Parameters(**changes), lambda *_: None)


def test_static_trees_are_normalised_by_sa(tmp_path) -> None:  # type: ignore[no-untyped-def]
    report = ran(
        cosmos_trees_static,
        nodes=16,
        seconds=6_000.0,
        loads=(5,),
        objects=(6,),
        moves_per_node=4,
        moves_per_node_many=1,
        optimum_nodes=5,
        optimum_cases=2,
    )
    sa = [row["× SA"] for row in report.rows if row["method"] == "SA"]
    assert set(sa) == {1.0}
    bounds = [row["× SA"] for row in report.rows if row["method"] == "lower bound"]
    assert all(0 < b <= 1 for b in bounds)
    random = [r["× SA"] for r in report.rows if r["method"] == "Random" and r["figure"] == "4.3(a)"]
    assert min(random) > 1.2
    assert all(goal.measured == goal.measured for goal in report.goals)  # none is NaN
    write(report, tmp_path)
    assert (tmp_path / "cosmos-trees-static-4.3b-course.svg").exists()


def test_adapting_trees_recover_and_others_do_not() -> None:
    report = ran(
        cosmos_trees_dynamic,
        nodes=24,
        seconds=5_000.0,
        slow_at_s=2_000.0,
        seconds_many=4_000.0,
        slow_at_many_s=1_000.0,
        objects=8,
        slowed=3,
        moves_per_node=8,
        moves_per_node_many=2,
    )
    last = {(r["figure"], r["method"]): r["× SA"] for r in report.rows}  # the last of each
    assert last["4.4", "SA+Adaptive"] < last["4.4", "SA"]
    assert len(report.goals) == 2


def test_a_tree_each_is_no_worse_than_one_for_all() -> None:
    report = ran(
        cosmos_trees_many,
        nodes=20,
        seconds=3_000.0,
        objects=(6,),
        loads=(1, 8),
        interests=(0.3,),
        moves_per_node=4,
    )
    assert {row["approach"] for row in report.rows} == {"one tree", "a tree each"}
    assert all(goal.measured < 1.1 for goal in report.goals)


def test_times_are_reported_for_building_deciding_and_labelling() -> None:
    report = ran(
        cosmos_trees_time,
        nodes=24,
        seconds=1_000.0,
        objects=(5, 10),
        annealed=(5,),
        long_moves=2,
        short_moves=1,
        rows=50,
        classes=(1, 50),
    )
    what = {row["what"] for row in report.rows}
    assert {"Greedy", "SA (1)", "SA (2)", "labelling a row at the home"} <= what
    assert report.goals[0].name == "Greedy, 10 objects"
