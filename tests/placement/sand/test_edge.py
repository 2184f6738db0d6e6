"""Edge: the three cases of SAND 3.2, and γ as (5) defines it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from hypothesis import given
from tests.placement.sand.trees import Drawn, drawn, line

from thalweg.placement.arrays import NONE
from thalweg.placement.sand.configurations import Asked, Configurations, Ways, at_source, combined
from thalweg.placement.sand.edge import edge, three_cases
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placing import place
from thalweg.placement.sand.tree import Tree


def asked(*rates: float, proxy: int = 0, pinned: int = NONE) -> Asked:
    return Asked(np.array(rates), proxy, np.full(4, np.inf), pinned)


def test_case_one_is_where_most_comes_from() -> None:
    inputs = [at_source(1, 4), at_source(2, 4), at_source(1, 4)]
    assert three_cases(inputs, asked(3, 5, 3, proxy=3))[0] == 1
    assert three_cases(inputs, asked(3, 7, 3, proxy=3))[0] == 2


def test_case_two_is_where_all_inputs_have_a_source() -> None:
    ways = line(0, 1, 2, 3)
    left = combined([at_source(1, 4), at_source(2, 4)], asked(1, 1), ways)
    right = combined([at_source(2, 4), at_source(3, 4)], asked(1, 1), ways)
    inputs = [Configurations(1, *parts(left)), Configurations(3, *parts(right))]
    assert three_cases(inputs, asked(1, 1, proxy=0)) == [1, 2, 0]


def parts(found: Configurations) -> tuple:
    return found.leaves, found.cost, found.delay_ms, found.inputs


def test_a_pinned_operator_has_no_choice() -> None:
    assert three_cases([at_source(1, 4)], asked(1, pinned=2)) == [2]


def test_distances_do_not_matter_to_edge() -> None:
    """A little more from far away wins over nearly as much from nearby."""
    tree = make_tree(
        "q",
        (Source("near", 9, 1), Source("far", 10, 2)),
        (Operator("join", ("near", "far"), 0.01),),
        proxy=0,
    )
    assert place(tree, line(0, 1, 1000), edge).tolist() == [1, 2, 2, 0]


def test_what_grows_runs_at_the_proxy() -> None:
    tree = make_tree("q", (Source("a", 1, 1),), (Operator("grow", ("a",), 3.0),), proxy=0)
    assert place(tree, line(0, 1), edge).tolist() == [1, 0, 0]


def test_inputs_come_along_to_a_common_location() -> None:
    """Both joins could stand at host 1, though each by itself would stand elsewhere."""
    tree = make_tree(
        "q",
        (Source("a", 5, 1), Source("b", 6, 2), Source("c", 5, 1), Source("d", 6, 3)),
        (
            Operator("ab", ("a", "b"), 1.0),
            Operator("cd", ("c", "d"), 1.0),
            Operator("all", ("ab", "cd"), 0.1),
        ),
        proxy=0,
    )
    at = dict(zip(tree.names, place(tree, line(0, 1, 2, 3), edge).tolist(), strict=True))
    assert (at["ab"], at["cd"], at["all"]) == (1, 1, 1)


@given(drawn(metric=True))
def test_gamma_is_equation_five(instance: Drawn) -> None:
    """Computed location by location and child by child, as printed."""
    tree, ways = instance.tree, instance.ways.unweighted
    known: list[Configurations] = []

    def recorded(inputs, asked: Asked, given: Ways) -> Configurations:
        found = edge(inputs, asked, given)
        known_by_operator.append(found)
        return found

    known_by_operator: list[Configurations] = []
    place(tree, instance.ways, recorded)
    operators = iter(known_by_operator)
    for node in range(len(tree)):
        source = not tree.inputs[node]
        known.append(
            at_source(int(tree.pinned[node]), len(ways.weight)) if source else next(operators)
        )
    gamma = printed(tree, ways, lambda node: known[node].best)
    for node in range(len(tree)):
        for v in range(len(ways.weight)):
            assert np.isclose(known[node].cost[v], gamma(v, node))


def printed(tree: Tree, ways: Ways, chosen: Callable[[int], int]) -> Callable[[int, int], float]:
    @cache
    def gamma(v: int, o: int) -> float:
        if tree.pinned[o] not in (NONE, v):
            return np.inf
        together = sum(gamma(v, c) for c in tree.inputs[o] if chosen(c) == v)
        apart = sum(
            min(gamma(chosen(c), c) + tree.rate_bps[c] * ways.weight[chosen(c), v], gamma(v, c))
            for c in tree.inputs[o]
            if chosen(c) != v
        )
        return together + apart

    return gamma


@given(drawn(metric=True))
def test_operators_stand_at_sources_or_at_the_proxy(instance: Drawn) -> None:
    tree = instance.tree
    at = place(tree, instance.ways, edge)
    assert set(at.tolist()) <= {*tree.pinned.tolist()} - {NONE}
