"""In-Network: hosts between the inputs, as many as k says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.placement.sand.trees import Drawn, drawn, line

from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import between, in_network
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.placing import place

CORNERS = [(0.0, 1.0), (0.87, -0.5), (-0.87, -0.5)]


def star(*more: tuple[float, float]) -> Ways:
    places = np.array([*CORNERS, *more])
    distance = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    return Ways(distance, distance)


def test_hosts_between_are_nearer_to_each_place_than_the_others_are() -> None:
    latency = line(0, 10, 4, 6, 11, -1).latency_ms
    assert between([0, 1], latency).tolist() == [2, 3]
    assert between([1, 1, 0], latency).tolist() == [2, 3]
    assert between([0, 0], latency).tolist() == []
    assert between([0], latency).tolist() == []


def test_the_nearest_to_all_in_sum_come_first() -> None:
    latency = star((0.3, 0.3), (0.0, 0.0), (0.1, 0.1)).latency_ms
    assert between([0, 1, 2], latency).tolist() == [4, 5, 3]


def test_three_streams_meet_in_the_middle_where_edge_plus_goes_to_a_source() -> None:
    ways = star((0.1, 0.1), (0.0, 0.0), (0.0, 50.0))
    sources = tuple(Source(name, 1, i) for i, name in enumerate("abc"))
    tree = make_tree("q", sources, (Operator("all", ("a", "b", "c"), 0.01),), proxy=5)
    assert place(tree, ways, edge_plus)[3] in (0, 1, 2)
    assert place(tree, ways, in_network(1))[3] == 4


def test_of_equally_cheap_hosts_the_nearest_to_the_proxy_is_taken() -> None:
    """Anywhere between two equal streams costs the same; the middle is on the way."""
    rows = [[0, 40, 20, 60], [40, 0, 20, 60], [20, 20, 0, 40], [60, 60, 40, 0]]
    distance = np.array(rows, float)
    tree = make_tree(
        "q", (Source("a", 8, 0), Source("b", 8, 1)), (Operator("ab", ("a", "b"), 0.1),), proxy=3
    )
    assert place(tree, Ways(distance, distance), in_network(5)).tolist() == [0, 1, 2, 3]


def test_hosts_that_are_too_late_take_no_part_of_k() -> None:
    """The best place in between lies off the way to the proxy; a bound leaves the next one."""
    ways = star((0.0, 0.0), (0.0, 0.2), (0.0, 50.0))
    sources = tuple(Source(name, 1, i) for i, name in enumerate("abc"))
    operators = (Operator("all", ("a", "b", "c"), 0.01),)
    way = float(ways.latency_ms[1, 4] + ways.latency_ms[4, 5])
    tree = make_tree("q", sources, operators, 5, bound_ms=way)
    assert place(tree, ways, in_network(1))[3] == 4


@given(drawn(most_hosts=20, most_sources=8, metric=True))
def test_without_hosts_in_between_it_is_edge_plus(instance: Drawn) -> None:
    tree, ways = instance.tree, instance.ways
    assert np.array_equal(place(tree, ways, in_network(0)), place(tree, ways, edge_plus))
