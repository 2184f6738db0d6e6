"""Which queries move: out of overload always, for less traffic where it pays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.distribution.making import running, subtree

from thalweg.overlay.distribution.entries import Rate
from thalweg.overlay.distribution.picture import Picture
from thalweg.overlay.distribution.shifting import adapt, excess
from thalweg.placement.arrays import floats


def moved(shifts):
    return [(s.running.query.name, s.to) for s in shifts]


def test_heavy_ones_leave_first_and_no_more_than_need_be():
    whole = subtree(
        "r",
        {"a": 1, "b": 1},
        running("light", "a", weight=1.0),
        running("heavy", "a", weight=3.0),
        running("other", "a", weight=2.0),
    )
    assert moved(excess(whole, allowed=4.0, resting=())) == [("heavy", None)]


def test_within_the_bound_nothing_moves():
    whole = subtree("r", {"a": 1, "b": 1}, running("q", "a", weight=3.0))
    assert excess(whole, allowed=3.0, resting=()) == []


def test_what_has_no_room_anywhere_moves_only_if_that_helps():
    one = subtree("r", {"a": 1, "b": 1}, running("q", "a", weight=3.0))
    assert excess(one, allowed=1.6, resting=()) == []
    two = subtree(
        "r", {"a": 1, "b": 1}, running("p", "a", weight=3.0), running("q", "a", weight=3.0)
    )
    assert moved(excess(two, allowed=2.5, resting=())) == [("p", "b")]


def test_who_wants_to_leave_is_rid_of_everything():
    runs = [running(f"q{i}", "a", weight=w) for i, w in enumerate((5.0, 0.0, 1.0))]
    whole = subtree("r", {"a": 0, "b": 1, "c": 1}, *runs)
    assert len(excess(whole, allowed=3.3, resting=())) == 3


def test_nobody_is_left_to_take_it():
    assert excess(subtree("r", {"a": 0}, running("q", "a")), 0.0, ()) == []


def test_what_moved_just_now_rests():
    whole = subtree("r", {"a": 0, "b": 1}, running("q", "a"), running("p", "a"))
    assert moved(excess(whole, 3.0, resting={"q"})) == [("p", None)]


@given(
    st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=2, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=25),
    st.sampled_from([0.1, 0.25, 1.0]),
)
def test_moves_come_to_an_end_within_one_weight_of_the_bound(capability, queries, slack):
    """Each move goes where the plan saw most room; then the load is looked at again."""
    names = [f"p{i}" for i in range(len(capability))]
    owner = {f"q{i}": names[at % len(names)] for i, (at, _) in enumerate(queries)}
    weight = {f"q{i}": float(w) for i, (_, w) in enumerate(queries)}
    allowed = (1 + slack) * sum(weight.values()) / sum(capability)
    for _ in range(100):
        runs = [running(q, owner[q], weight=weight[q]) for q in owner]
        whole = subtree("r", dict(zip(names, capability, strict=True)), *runs)
        shifts = excess(whole, allowed, ())
        if not shifts:
            break
        for shift in shifts:
            load = {n: sum(weight[q] for q in owner if owner[q] == n) for n in names}
            room = {n: allowed * c - load[n] for n, c in zip(names, capability, strict=True)}
            owner[shift.running.query.name] = shift.to or max(room, key=lambda n: (room[n], n))
    else:
        pytest.fail("queries move for ever")
    heaviest = max(weight.values())
    share = sum(weight.values()) / sum(capability)
    spare = 0.0 if slack * share * min(capability) >= heaviest else heaviest
    for name, able in zip(names, capability, strict=True):
        load = sum(weight[q] for q in owner if owner[q] == name)
        assert load <= allowed * able * (1 + 1e-6) + spare


APART = floats(np.array([[0.0, 20.0], [20.0, 0.0]]))


def test_alike_queries_come_together_where_there_is_room():
    rates = {s: Rate(s, "elsewhere", 1, 10.0) for s in (0, 1)}
    a = subtree(
        "a",
        {"a": 1},
        *(running(f"a{i}", "a", substreams=(0,)) for i in range(3)),
        running("stray", "a", substreams=(1,)),
    )
    b = subtree("b", {"b": 1}, *(running(f"b{i}", "b", substreams=(1,)) for i in range(3)))
    found = adapt(Picture([a, b], APART, rates), allowed=6.0, resting=(), seed=1)
    assert [(r.query.name, to) for r, to in found] == [("stray", 1)]
    assert adapt(Picture([a, b], APART, rates), 6.0, {"stray"}, 1) == []


def test_too_much_at_one_child_flows_to_the_other():
    a = subtree("a", {"a": 1}, *(running(f"q{i}", "a") for i in range(6)))
    found = adapt(Picture([a, subtree("b", {"b": 1})], APART, {}), 4.0, (), seed=1)
    assert [to for _, to in found] == [1, 1]


def test_one_child_or_no_query_leaves_nothing_to_decide():
    assert adapt(Picture([subtree("a", {"a": 1}, running("q", "a"))], APART, {}), 1.0, (), 1) == []
    assert adapt(Picture([subtree("a", {"a": 1}), subtree("b", {})], APART, {}), 1.0, (), 1) == []


def test_many_queries_are_coarsened_and_still_come_together(monkeypatch):
    monkeypatch.setattr("thalweg.overlay.distribution.shifting.MOST_VERTICES", 20)
    rates = {s: Rate(s, "elsewhere", 1, 10.0) for s in (0, 1)}
    a, b = (
        subtree(
            name, {name: 1}, *(running(f"{name}{i}", name, substreams=(i % 2,)) for i in range(60))
        )
        for name in "ab"
    )
    found = adapt(Picture([a, b], APART, rates), allowed=75.0, resting=(), seed=1)
    after = {r.query.name: to for r, to in found}
    wants = [[0, 0], [0, 0]]  # by child and substream
    for number, child in enumerate((a, b)):
        for r in child.running.values():
            wants[after.get(r.query.name, number)][r.query.substreams[0]] += 1
    mostly_other, mostly_one = sorted(wants)  # coarse vertices may have a stray or two
    assert mostly_other[1] >= 50
    assert mostly_one[0] >= 50
