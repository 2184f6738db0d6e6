"""The best balance, against all assignments."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.placement.fragments.optimum import best_balance


@given(
    st.lists(st.floats(0, 1), max_size=6),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
)
def test_no_assignment_is_better(loads, fixed):
    nodes = len(fixed)

    def busiest(place):
        at = list(fixed)
        for load, node in zip(loads, place, strict=True):
            at[node] += load
        return max(at)

    best, place = best_balance(loads, nodes, fixed)
    assert busiest(place) == pytest.approx(best)
    everything = product(range(nodes), repeat=len(loads))
    assert best == pytest.approx(min(busiest(p) for p in everything))


def test_greedy_is_beaten_where_it_can_be():
    best, _ = best_balance([3, 3, 2, 2, 2], 2)
    assert best == 6


def test_too_large_an_instance_is_refused():
    with pytest.raises(ValueError, match="24 at most"):
        best_balance([1.0] * 25, 3)
    with pytest.raises(ValueError, match="negative"):
        best_balance([-1.0], 1)
