"""Which fragments go first: three classes times four, then by density."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.partners.selection import (
    ORDERS,
    Candidate,
    elementary,
    flow_aware,
    intermediate,
    ordered,
    reason,
    total,
    victims,
)

A, B, C = "giver", "receiver", "other"


def fragment(name, home, *near, load=0.1, size=0.0):
    return Candidate(name, load, size, home, near)


@pytest.mark.parametrize(
    ("home", "near", "expected"),
    [
        (B, (B,), (0, 0)),
        (B, (A, B), (0, 1)),
        (B, (C,), (0, 2)),
        (B, (A,), (0, 3)),
        (C, (B,), (1, 0)),
        (C, (), (1, 2)),
        (A, (B, C), (2, 0)),
        (A, (A,), (2, 3)),
    ],
)
def test_classes_by_home_and_by_neighbours(home, near, expected):
    assert flow_aware(fragment("f", home, *near), A, B) == expected


def test_a_dense_native_goes_last_where_flows_count_and_first_where_they_do_not():
    dense = fragment("dense", A, A, load=0.2)
    home = fragment("home", B, C, load=0.1, size=1000)
    foreign = fragment("foreign", C, C, load=0.1, size=10)
    some = [dense, home, foreign]
    assert [f.name for f in ordered(some, A, B, flow_aware)] == ["home", "foreign", "dense"]
    assert [f.name for f in ordered(some, A, B, intermediate)] == ["foreign", "home", "dense"]
    assert [f.name for f in ordered(some, A, B, elementary)] == ["dense", "foreign", "home"]


def test_density_is_load_for_a_byte_and_no_state_counts_as_one_byte():
    assert fragment("f", A, load=0.5).density == 0.5
    assert fragment("f", A, load=0.5, size=10).density == 0.05


def test_the_lightest_goes_alone_where_all_are_heavier_than_what_is_wanted():
    heavy = [fragment("x", A, load=0.14), fragment("y", A, load=0.2)]
    assert [f.name for f in victims(heavy, A, B, 0.1, flow_aware)] == ["x"]
    assert victims(heavy, A, B, 0.05, flow_aware) == []
    assert victims(heavy, A, B, 0.1, flow_aware, exceed=False) == []


def test_the_reason_is_told_in_words():
    assert reason(fragment("f", B, B), A, B) == (
        "foreign, native to the receiver; neighbours there only"
    )


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.text("abcdef", min_size=1, max_size=4),
        st.floats(0, 0.5),
        st.floats(0, 1e6),
        st.sampled_from([A, B, C]),
        st.lists(st.sampled_from([A, B, C]), max_size=3).map(tuple),
    ),
    max_size=12,
    unique_by=lambda c: c.name,
)


@given(CANDIDATES, st.floats(0, 2), st.sampled_from(list(ORDERS)))
def test_what_goes_brings_the_two_nearer(fragments, wanted, order):
    chosen = victims(fragments, A, B, wanted, ORDERS[order])
    gap = 2 * wanted
    assert all(f.load > 0 for f in chosen)
    assert not chosen or abs(gap - 2 * total(chosen)) <= max(gap, 1e-12)


@given(CANDIDATES, st.floats(0, 2), st.sampled_from(list(ORDERS)))
def test_nothing_of_a_better_class_that_would_fit_is_left(fragments, wanted, order):
    rule = ORDERS[order]
    chosen = victims(fragments, A, B, wanted, rule, exceed=False)
    left = wanted - total(chosen)
    for other in fragments:
        if other not in chosen and other.load > 0:
            assert other.load > left - 1e-9
