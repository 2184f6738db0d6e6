"""Algorithm 6.2, and the two rules beside it."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.partners.requests import Wish, homing, spare, wish

LOADS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 2), max_size=6)


def test_who_is_far_below_the_mean_asks_the_busiest_for_half_the_gap():
    assert wish(0.2, {"a": 0.5, "b": 0.9}, 1.2) == Wish("b", pytest.approx(0.35), "low")


def test_who_is_near_the_mean_asks_nobody():
    assert wish(0.5, {"a": 0.55, "b": 0.6}, 1.2) is None
    assert wish(0.1, {}, 1.2) is None


def test_the_printed_rule_leaves_one_far_above_alone_and_relief_does_not():
    loads = {"a": 1.45, "b": 0.95, "c": 0.95, "d": 0.95, "e": 0.95}
    assert wish(0.95, loads, 1.2) is None
    assert wish(0.95, loads, 1.2, relieve=True) == Wish("a", pytest.approx(0.25), "high")


def test_one_who_had_nothing_to_give_is_left_out_of_the_mean_too():
    assert wish(0.2, {"stuck": 0.9, "b": 0.6}, 1.2, dry=["stuck"]) == Wish(
        "b", pytest.approx(0.2), "low"
    )
    assert wish(0.5, {"stuck": 5.0, "b": 0.5}, 1.2, dry=["stuck"]) is None


@given(st.floats(0, 2), LOADS, st.floats(1.01, 2), st.booleans())
def test_what_is_asked_for_never_turns_the_two_around(own, partners, kappa, relieve):
    found = wish(own, partners, kappa, relieve=relieve)
    if found is not None:
        assert own + found.load <= partners[found.partner] - found.load + 1e-9


@given(st.floats(0, 2), LOADS, st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9)))
def test_own_fragments_come_home_as_long_as_nobody_has_to_be_relieved(own, partners, abroad):
    found = homing(own, partners, abroad, 1.2)
    if found is not None:
        mean = (own + sum(partners.values())) / (1 + len(partners))
        assert own + found.load == pytest.approx(sqrt(1.2) * mean)
        assert abroad[found.partner] == max(abroad.values())


@given(st.floats(0, 2), LOADS, st.floats(1.01, 2))
def test_who_lets_fragments_go_home_does_not_become_one_that_asks(own, partners, kappa):
    left = own - spare(own, partners, kappa)
    others = sum(partners.values())
    mean_after = (left + others) / (1 + len(partners))
    assert left == own or kappa * left >= mean_after - 1e-9
