"""What is known of distances, and what is made of it."""

from math import inf

from thalweg.overlay.sand.view import lacking, pair, ways_of


def test_each_unknown_pair_is_measured_once_by_the_first_of_its_names():
    view = {pair("b", "a"): 5}
    assert lacking(view, ["a", "b", "c"]) == {"a": ("c",), "b": ("c",)}
    assert lacking(view, ["b", "a"]) == {}


def test_ways_are_symmetric_in_milliseconds_and_go_over_the_hub_where_unknown():
    view = {("a", "hub"): 3_000, ("b", "hub"): 4_000, ("a", "b"): 6_000, ("c", "hub"): 1_000}
    ways = ways_of(view, ["a", "b", "c", "d", "hub"], "hub")
    assert ways.latency_ms[0, 1] == ways.latency_ms[1, 0] == 6
    assert ways.latency_ms[0, 2] == 4
    assert ways.latency_ms[0, 3] == inf
    assert ways.latency_ms[3, 3] == 0
