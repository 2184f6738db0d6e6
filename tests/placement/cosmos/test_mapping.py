"""Algorithm 3.2: gains are true, passes only improve, and no limit is broken on the way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import cut_by_pairs, system, systems

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.mapping import (
    MappingTask,
    Moves,
    map_greedily,
    refine,
    relieve,
)
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.system import System
from thalweg.placement.cosmos.view import global_view


def task_of(made: System) -> MappingTask:
    return global_view(made, Balance()).task(made.queries, made.substreams)


def hand_made(
    edges: list[list[float]], pull: list[list[float]], limits: list[float]
) -> MappingTask:
    far = 1.0 - np.eye(len(limits))
    return MappingTask(
        np.array(edges, np.float32), floats(np.array(pull)), floats(np.ones(len(pull))),
        floats(far), floats(limits),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(systems, st.integers(0, 999))
def test_the_cut_of_a_task_is_the_weighted_edge_cut(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mapping = ints(rng.integers(len(made.network), size=len(made.queries)))
    assert task_of(made).cut(mapping) == pytest.approx(cut_by_pairs(made, mapping), rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(systems, st.integers(0, 999))
def test_gains_add_up_to_what_the_cut_has_lost(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    task = task_of(made)
    start = ints(rng.integers(len(made.network), size=len(made.queries)))
    moves = Moves(task, start)
    for v in rng.permutation(len(start)).tolist():
        moves.move(v, int((moves.mapping[v] + 1) % len(made.network)))
    lost = task.cut(start) - task.cut(moves.mapping)
    assert moves.gained == pytest.approx(lost, rel=1e-3, abs=1e-3 * task.cut(start))
    assert moves.load == pytest.approx(task.load(moves.mapping))


@settings(max_examples=40, deadline=None)
@given(systems)
def test_refining_never_costs_and_never_breaks_a_limit(made: System) -> None:
    task = task_of(made)
    greedy = map_greedily(task)
    fine = refine(task, greedy)
    assert task.cut(fine) <= task.cut(greedy) * (1 + 1e-6)
    over = np.maximum(task.load(greedy) - task.limits, 0)
    assert (task.load(fine) <= task.limits * (1 + 1e-6) + over).all()


def test_small_graphs_are_mapped_nearly_as_well_as_possible() -> None:
    ratios = []
    for seed in range(12):
        made = system(seed, providers=3, queries=7, substreams=12, wanted=3)
        task = task_of(made)
        fine = refine(task, relieve(task, map_greedily(task)))
        feasible = [
            m
            for m in map(np.array, product(range(3), repeat=7))
            if (task.load(m) <= task.most).all()
        ]
        if feasible and (task.load(fine) <= task.most).all():
            ratios.append(task.cut(fine) / min(task.cut(m) for m in feasible))
    assert len(ratios) >= 4
    assert np.mean(ratios) < 1.05


def test_a_negative_gain_is_taken_where_it_leads_to_a_better_mapping() -> None:
    """Two pairs of friends, parted, at two full children: one must step out before the others."""
    friends = [[0, 0, 9, 0], [0, 0, 0, 9], [9, 0, 0, 0], [0, 9, 0, 0]]
    task = hand_made(friends, [[0, 0, 5]] * 4, [2, 2, 1])
    start = ints([0, 0, 1, 1])
    assert (Moves(task, start).offers()[:, 2] < 0).all()
    fine = refine(task, start)
    assert task.cut(fine) == 0
    assert (task.load(fine) <= task.limits).all()


def test_who_would_lose_most_by_waiting_is_placed_first() -> None:
    """Both want child 0, which has room for one: the one with the longer way elsewhere gets it."""
    task = hand_made([[0, 0], [0, 0]], [[0, 3], [0, 8]], [1, 1])
    assert map_greedily(task).tolist() == [1, 0]


def test_without_room_anywhere_the_violation_is_least() -> None:
    task = hand_made(np.zeros((3, 3)).tolist(), [[0, 5]] * 3, [1.0, 1.0])
    assert sorted(task.load(map_greedily(task)).tolist()) == [1, 2]


def test_too_much_load_is_moved_away_at_the_least_cost() -> None:
    task = hand_made(np.zeros((3, 3)).tolist(), [[0, 5, 9], [0, 1, 9], [0, 7, 9]], [2, 2, 2])
    assert relieve(task, ints([0, 0, 0])).tolist() == [0, 1, 0]


def test_an_empty_graph_has_an_empty_mapping() -> None:
    task = task_of(system(1, queries=0))
    assert refine(task, relieve(task, map_greedily(task))).tolist() == []
