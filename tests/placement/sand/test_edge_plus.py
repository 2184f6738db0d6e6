"""Edge+: the fourth case of SAND 3.3, against a list of all permutations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.sand.trees import Drawn, drawn, line

from thalweg.placement.arrays import NONE
from thalweg.placement.sand.configurations import Asked, Configurations, Ways
from thalweg.placement.sand.edge_plus import close_together, edge_plus
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.placing import place


def listed(
    inputs: Sequence[Configurations], asked: Asked, ways: Ways, limit_ms: float
) -> dict[int, float]:
    """The least cost at each location over all permutations, one by one."""
    found: dict[int, float] = {}
    for places in product(*(below.leaves.tolist() for below in inputs)):
        for where in set(places) if asked.pinned == NONE else {asked.pinned}:
            apart = sum(float(ways.latency_ms[v, where]) for v in places)
            late = max(
                float(below.delay_ms[v] + ways.latency_ms[v, where])
                for below, v in zip(inputs, places, strict=True)
            )
            cost = sum(
                float(below.cost[v] + rate * ways.weight[v, where])
                for below, v, rate in zip(inputs, places, asked.rates_bps, strict=True)
            )
            if apart <= limit_ms + 1e-9 and late <= asked.room_ms[where] and np.isfinite(cost):
                found[where] = min(found.get(where, np.inf), cost)
    return found


@given(drawn(metric=True, most_sources=7), st.sampled_from([1.1, 1.5, np.inf]))
def test_case_four_is_the_best_of_all_permutations(instance: Drawn, slack: float) -> None:
    direct = direct_ms(instance.tree, instance.ways.latency_ms)
    tree = instance.bounded(direct * slack if direct else np.inf)

    def compared(inputs, asked: Asked, ways: Ways) -> Configurations:
        for limit_ms in (0.0, 40.0, 1000.0):
            fast = list(close_together(inputs, asked, ways, limit_ms + 1e-9))
            found: dict[int, float] = {}
            for one in fast:
                found[one.location] = min(found.get(one.location, np.inf), one.cost)
            expected = listed(inputs, asked, ways, limit_ms)
            assert found.keys() == expected.keys()
            assert all(np.isclose(found[v], expected[v]) for v in found)
        return edge_plus(inputs, asked, ways)

    place(tree, instance.ways, compared)


def test_distances_matter_to_edge_plus() -> None:
    """What Edge sends over a long way to save a little stays near."""
    tree = make_tree(
        "q",
        (Source("near", 9, 1), Source("far", 10, 2)),
        (Operator("join", ("near", "far"), 1.9),),
        proxy=0,
    )
    assert place(tree, line(0, 1, 1000), edge_plus).tolist() == [1, 2, 0, 0]


def test_inputs_move_towards_each_other() -> None:
    """Each filter would run at its larger source; close together, they cost less in all."""
    tree = make_tree(
        "q",
        (Source("a", 10, 0), Source("b", 9, 1), Source("c", 9, 2), Source("d", 10, 3)),
        (
            Operator("ab", ("a", "b"), 1.0),
            Operator("cd", ("c", "d"), 1.0),
            Operator("all", ("ab", "cd"), 0.1),
        ),
        proxy=1,
    )
    ways = line(0, 10, 11, 21)
    at = dict(zip(tree.names, place(tree, ways, edge_plus).tolist(), strict=True))
    assert (at["ab"], at["cd"]) == (1, 1)
