"""What a coordinator sees of its children, and where it sends a query."""

import numpy as np
from tests.overlay.distribution.making import query, running, subtree

from thalweg.overlay.distribution.entries import Rate
from thalweg.overlay.distribution.picture import Heading, Picture, between
from thalweg.placement.arrays import floats

NEAR_AND_FAR = floats(np.array([[0.0, 10.0], [10.0, 0.0]]))
PLENTY = floats([100.0, 100.0])


def picture(*children, rates=()):
    return Picture(children, NEAR_AND_FAR, {r.substream: r for r in rates})


def test_a_query_goes_to_where_its_source_is():
    seen = picture(subtree("a", {"a": 1}), subtree("b", {"b": 1}), rates=[Rate(0, "b", 1, 5.0)])
    assert seen.cheapest(query("q", substreams=(0,)), 1.0, PLENTY) == 1


def test_a_query_goes_to_those_that_want_the_same():
    seen = picture(
        subtree("a", {"a": 1}, running("p", "a", substreams=(0, 1))),
        subtree("b", {"b": 1}, running("r", "b", substreams=(2,))),
        rates=[Rate(s, "elsewhere", 1, 5.0) for s in range(3)],
    )
    assert seen.cheapest(query("q", substreams=(1,)), 1.0, PLENTY) == 0
    assert seen.cheapest(query("q", substreams=(2,)), 1.0, PLENTY) == 1


def test_results_pull_it_to_its_proxy():
    seen = picture(subtree("a", {"a": 1}), subtree("b", {"b": 1, "x": 0}))
    assert seen.cheapest(query("q", "x", result_bps=2.0), 1.0, PLENTY) == 1


def test_without_room_there_it_goes_where_there_is_some():
    seen = picture(subtree("a", {"a": 1}), subtree("b", {"b": 1}), rates=[Rate(0, "b", 1, 5.0)])
    assert seen.cheapest(query("q"), 2.0, floats([3.0, 1.0])) == 0


def test_a_query_that_wants_nothing_can_be_placed():
    seen = picture(subtree("a", {"a": 1}), subtree("b", {"b": 1}))
    assert seen.cheapest(query("q", substreams=()), 1.0, floats([0.0, 2.0])) == 1


def test_room_is_that_of_the_provider_with_most():
    child = subtree("a", {"a": 1, "b": 2, "gone": 0}, running("q", "a", weight=0.5))
    assert child.room(allowed=1.0) == 2.0
    assert subtree("a", {"a": 0}).room(1.0) == -np.inf


def test_a_distance_that_nobody_has_measured_counts_as_the_farthest():
    known = {("a", "b"): 2_000, ("b", "a"): 2_000, ("a", "c"): 5_000, ("c", "a"): 5_000}
    found = between(["a", "b", "c"], lambda a, b: known.get((a, b)))
    assert found.tolist() == [[0, 2, 5], [2, 0, 5], [5, 5, 0]]
    assert between(["a", "b"], lambda a, b: None).tolist() == [[0, 0], [0, 0]]


def loads_after(seen, **headings):
    after = seen.after(headings)
    return [(c.total_load, sorted(c.running)) for c in after.children]


def test_what_is_on_its_way_counts_where_it_goes():
    stays, goes = running("stays", "a", weight=2.0), running("goes", "a'", weight=3.0)
    seen = picture(subtree("a", {"a": 1, "a'": 1}, stays, goes), subtree("b", {"b": 1}))
    assert seen.after({}) is seen
    assert loads_after(seen, goes=Heading(goes, "b")) == [(2.0, ["stays"]), (3.0, ["goes"])]
    assert loads_after(seen, goes=Heading(goes, None)) == [(2.0, ["stays"]), (0.0, [])]
    new = running("new", "far", weight=5.0)
    assert loads_after(seen, new=Heading(new, "b"))[1] == (5.0, ["new"])


def test_what_has_arrived_counts_once():
    there = running("q", "b", weight=3.0)
    seen = picture(subtree("a", {"a": 1}), subtree("b", {"b": 1}, there))
    assert loads_after(seen, q=Heading(running("q", "a", weight=3.0), "b")) == [(0, []), (3, ["q"])]
