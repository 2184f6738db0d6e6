"""Laws of all strategies: none beats the optimum, every bound is kept, brute force agrees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.placement.sand.trees import Drawn, drawn

from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.dynamic import earliest
from thalweg.placement.sand.edge import edge
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placeable import Unplaceable, direct_ms, limit_ms
from thalweg.placement.sand.placing import at_proxy, place
from thalweg.placement.sand.tree import Tree

HEURISTICS = {
    "proxy": at_proxy,
    "edge": lambda tree, ways: place(tree, ways, edge),
    "edge+": lambda tree, ways: place(tree, ways, edge_plus),
    "in-network": lambda tree, ways: place(tree, ways, in_network(5)),
}
SLACK = st.sampled_from([1.0, 1.05, 1.3, 1.7, 2.5, np.inf])


def brute_force(tree: Tree, latency_ms: Floats) -> tuple[float, float]:
    """The least cost within the bound, and the least delay, over all placements one by one."""
    free = [n for n in range(len(tree)) if tree.pinned[n] == NONE]
    at = tree.pinned.copy()
    cheapest, fastest = np.inf, np.inf
    for hosts in product(range(len(latency_ms)), repeat=len(free)):
        at[free] = hosts
        delay = tree.delay_ms(at, latency_ms)
        fastest = min(fastest, delay)
        if delay <= limit_ms(tree):
            cheapest = min(cheapest, tree.cost(at, latency_ms))
    return cheapest, fastest


@given(drawn(most_hosts=4, most_sources=5), SLACK)
def test_the_optimum_is_that_of_brute_force(instance: Drawn, slack: float) -> None:
    latency = instance.ways.latency_ms
    assume(len(latency) ** len(instance.tree.operators) <= 1500)
    _, fastest = brute_force(instance.tree, latency)
    tree = instance.bounded(fastest * slack if fastest else np.inf)
    cheapest, _ = brute_force(tree, latency)
    at = optimal(tree, instance.ways)
    assert tree.delay_ms(at, latency) <= limit_ms(tree)
    assert np.isclose(tree.cost(at, latency), cheapest)
    assert np.isclose(tree.delay_ms(earliest(tree, latency), latency), fastest)


@given(drawn(most_hosts=4, most_sources=4), st.floats(0.1, 0.99))
def test_what_the_optimum_refuses_no_placement_meets(instance: Drawn, share: float) -> None:
    latency = instance.ways.latency_ms
    assume(len(latency) ** len(instance.tree.operators) <= 1500)
    _, fastest = brute_force(instance.tree, latency)
    assume(fastest > 0)
    with pytest.raises(Unplaceable, match="nothing meets the bound"):
        optimal(instance.bounded(fastest * share), instance.ways)


@given(drawn(most_hosts=30, most_sources=12, metric=True), SLACK)
def test_bounds_are_kept_and_nobody_beats_the_optimum(instance: Drawn, slack: float) -> None:
    latency = instance.ways.latency_ms
    direct = direct_ms(instance.tree, latency)
    tree = instance.bounded(direct * slack if direct else np.inf)
    best = optimal(tree, instance.ways)
    least = tree.cost(best, latency)
    for name, strategy in HEURISTICS.items():
        at = strategy(tree, instance.ways)
        assert ((tree.pinned == NONE) | (at == tree.pinned)).all(), name
        assert tree.delay_ms(at, latency) <= limit_ms(tree), name
        assert tree.cost(at, latency) >= least * (1 - 1e-9), name
    assert tree.delay_ms(best, latency) <= limit_ms(tree)


@given(drawn(most_hosts=30, most_sources=12, metric=True))
def test_a_bound_that_does_not_bind_changes_nothing(instance: Drawn) -> None:
    loose = instance.bounded(1e9)
    for name, strategy in (*HEURISTICS.items(), ("optimal", optimal)):
        free = strategy(instance.tree, instance.ways)
        assert np.array_equal(strategy(loose, instance.ways), free), name


def test_streams_without_a_rate_are_placed_in_time_too() -> None:
    """Everything costs nothing, so that only the bound decides."""
    distance = np.array([[0, 50, 10], [50, 0, 10], [10, 10, 0]], float)
    silent = (Source("a", 0, 0), Source("b", 0, 1))
    tree = make_tree("q", silent, (Operator("ab", ("a", "b"), 1.0),), 2, bound_ms=10)
    for strategy in (*HEURISTICS.values(), optimal):
        at = strategy(tree, Ways(distance, distance))
        assert tree.delay_ms(at, distance) == 10
