"""Which queries must leave their providers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.distribution.making import running, subtree

from thalweg.overlay.distribution.overload_moves import excess


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
