"""Algorithm 3.3: who moves when a child has too much, and who moves back."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.cosmos.mapping import MappingTask
from thalweg.placement.cosmos.rebalancing import Caution, RoundStart, rebalance


def task(
    pull: list[list[float]], limits: list[float], weight: list[float] | None = None
) -> MappingTask:
    count = len(pull)
    far = 1.0 - np.eye(len(limits))
    return MappingTask(
        np.zeros((count, count), np.float32),
        floats(np.array(pull, float)),
        floats(weight or np.ones(count)),
        floats(far),
        floats(limits),
    )


STEADY = Caution(start_over=9.0)  # never


def rebalanced(
    made: MappingTask, place: list[int], density: list[float], caution: Caution = STEADY
) -> list[int]:
    standing = RoundStart(ints(place), floats(density))
    rng = np.random.default_rng(0)
    return rebalance(made, standing, caution, rng).tolist()


def test_within_limits_and_well_placed_nobody_moves() -> None:
    made = task([[0, 5], [0, 5], [5, 0]], [2, 2])
    assert rebalanced(made, [0, 0, 1], [1, 1, 1]) == [0, 0, 1]


def test_the_vertex_with_the_largest_benefit_leaves_a_crowded_child() -> None:
    made = task([[0, 50], [0, 1], [0, 50], [0, 50]], [3, 3])
    assert rebalanced(made, [0, 0, 0, 0], [1, 1, 1, 1]) == [0, 1, 0, 0]


def test_of_equal_benefits_the_densest_leaves() -> None:
    made = task([[0, 100], [0, 100], [0, 100], [0, 105]], [3, 3])
    assert rebalanced(made, [0, 0, 0, 0], [1, 1, 9, 99]) == [0, 0, 0, 1]
    assert rebalanced(
        made, [0, 0, 0, 0], [1, 1, 9, 99], Caution(nearly_best=0.01, start_over=9)
    ) == [0, 0, 1, 0]


def test_who_came_in_this_round_is_moved_again_first() -> None:
    """The newcomer was put at child 0, as everyone wants to be there; now it is one too many."""
    made = task([[0, 100], [0, 100], [0, 100], [0, 101]], [3, 3])
    crowded = task([[0, 100], [0, 100], [0, 100], [0, 101]], [3, 0.5])
    assert rebalanced(made, [0, 0, 0, NONE], [9, 9, 9, 1]) == [0, 0, 0, 1]
    assert rebalanced(crowded, [0, 0, 0, NONE], [9, 9, 9, 1])[:3] == [0, 0, 0]


def test_a_vertex_much_heavier_than_the_flow_stays() -> None:
    made = task([[0, 9], [0, 9], [0, 9]], [5, 5], weight=[2.0, 0.5, 2.75])
    # 0.25 too much: nothing is light enough but for the second, at 90 % of 0.5 not even that.
    assert rebalanced(made, [0, 0, 0], [1, 1, 1]) == [0, 0, 0]
    lighter = task([[0, 9], [0, 9], [0, 9]], [5, 5], weight=[2.0, 0.25, 3.0])
    assert rebalanced(lighter, [0, 0, 0], [1, 1, 1]) == [0, 1, 0]


def test_refining_moves_to_where_it_pays_and_only_if_it_pays_enough() -> None:
    made = task([[8, 4], [8, 7.5]], [2, 2])
    assert rebalanced(made, [0, 0], [1, 1]) == [1, 1]
    assert rebalanced(made, [0, 0], [1, 1], Caution(least_gain=0.3, start_over=9)) == [1, 0]
    assert rebalanced(made, [0, 0], [1, 1], Caution(least_gain=0.9, start_over=9)) == [0, 0]


def test_nobody_is_moved_into_a_child_without_room() -> None:
    made = task([[8, 1], [8, 1], [1, 8]], [2, 1])
    found = rebalanced(made, [0, 0, 0], [1, 1, 1])
    assert sorted(found) == [0, 0, 1]
    assert found[2] == 0


def test_newcomers_are_placed_where_they_cost_least() -> None:
    made = task([[9, 1], [1, 9]], [2, 2])
    assert rebalanced(made, [NONE, NONE], [1, 1]) == [1, 0]


def test_where_everything_is_mixed_a_coordinator_starts_over() -> None:
    """Two kinds of vertices, half of each at each full child: no single move helps."""
    kind = np.arange(8) % 2
    edges = np.where(kind[:, None] == kind, 1.0, 0.0) - np.eye(8)
    far = 1.0 - np.eye(2)
    made = MappingTask(
        edges.astype(np.float32), floats(np.zeros((8, 2))), floats(np.ones(8)), floats(far),
        floats([4.0, 4.0]),
    )  # fmt: skip
    place = [0, 0, 0, 0, 1, 1, 1, 1]
    assert rebalanced(made, place, [1] * 8) == place
    found = rebalanced(made, place, [1] * 8, Caution())
    assert made.cut(ints(found)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_decides_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = task(rng.random((30, 4)).tolist(), [6, 8, 9, 9])
    place = ints(rng.integers(4, size=30))
    standing = RoundStart(place, floats(rng.random(30)))
    found = [
        rebalance(made, standing, Caution(), np.random.default_rng(seed)).tolist() for _ in range(2)
    ]
    assert found[0] == found[1]


def test_who_rests_stays_and_nobody_takes_its_place() -> None:
    """The two would change places; with one at rest, the other finds no room."""
    made = task([[9, 1], [1, 9]], [1, 1])
    anew = Caution(start_over=0.1)
    assert rebalanced(made, [0, 1], [1, 1], anew) == [1, 0]
    standing = RoundStart(ints([0, 1]), floats([1, 1]), rests=np.array([True, False]))
    assert rebalance(made, standing, STEADY, np.random.default_rng(0)).tolist() == [0, 1]
    crowded = task([[0, 9], [0, 9], [0, 9]], [1, 3])
    for who in range(3):
        rests = np.arange(3) == who
        standing = RoundStart(ints([0, 0, 0]), floats([1, 1, 1]), rests=rests)
        found = rebalance(crowded, standing, STEADY, np.random.default_rng(0))
        assert found.tolist() == [0 if rest else 1 for rest in rests]
