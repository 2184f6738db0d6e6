"""What has no place is refused with the source, the host and the way out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.sand.test_strategies import HEURISTICS
from tests.placement.sand.trees import line

from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placeable import Unplaceable, direct_ms
from thalweg.placement.sand.placing import at_proxy


def test_a_proxy_out_of_reach_is_refused_with_the_source_that_can_not_reach_it() -> None:
    distance = np.array([[0, 1, np.inf], [1, 0, np.inf], [1, 1, 0]])
    tree = make_tree("q", (Source("a", 1, 0),), (Operator("f", ("a",), 0.5),), proxy=2)
    for strategy in (*HEURISTICS.values(), optimal):
        with pytest.raises(Unplaceable, match="no way leads from a to the proxy"):
            strategy(tree, Ways(distance, distance))


def test_a_detour_is_found_by_the_optimum_and_named_by_the_others() -> None:
    distance = np.array([[0, 1, np.inf], [np.inf, 0, 1], [np.inf, np.inf, 0]])
    tree = make_tree("q", (Source("a", 1, 0),), (Operator("f", ("a",), 0.5),), proxy=2)
    ways = Ways(distance, distance)
    assert optimal(tree, ways).tolist() == [0, 1, 2]
    for strategy in HEURISTICS.values():
        with pytest.raises(Unplaceable, match="only by a detour over other hosts"):
            strategy(tree, ways)


def test_a_bound_below_the_direct_way_names_the_source_and_the_delay() -> None:
    tree = make_tree("q", (Source("a", 1, 0),), (Operator("f", ("a",), 0.5),), 1, bound_ms=5)
    for strategy in (*HEURISTICS.values(), optimal):
        with pytest.raises(Unplaceable, match="the bound of 5 ms: a alone takes 7 ms") as told:
            strategy(tree, line(0, 7))
        assert (told.value.resource, told.value.host) == ("latency", 0)


def test_a_source_at_a_host_that_is_not_there_is_refused() -> None:
    tree = make_tree("q", (Source("a", 1, 9),), (Operator("f", ("a",), 0.5),), 1)
    with pytest.raises(Unplaceable, match="a stands at host 9, and the last one is 1"):
        optimal(tree, line(0, 7))


def test_a_pinned_operator_is_a_stop_on_the_direct_way() -> None:
    pinned = Operator("f", ("a",), 0.5, 1)
    tree = make_tree("q", (Source("a", 1, 0),), (pinned, Operator("g", ("f",), 1)), 2)
    ways = line(0, 10, 2)
    assert direct_ms(tree, ways.latency_ms) == 10 + 8
    assert at_proxy(tree, ways).tolist() == [0, 1, 2, 2]
