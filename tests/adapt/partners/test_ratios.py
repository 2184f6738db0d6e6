"""PR, PPR and CPR of the plan in the source's figure 6.1, and the laws that the analysis uses."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.partners.ratios import (
    Step,
    cpr,
    hops,
    inherent_us,
    measured_pr,
    mm1,
    ppr,
    pr,
    worst,
)

# From s₁: o₁ and o₂ at n₁, then o₅ at n₂.
PATH = (Step("n1", 20, 0.5), Step("n1", 30, 2.0), Step("n2", 50))


def test_a_tuple_that_becomes_two_counts_twice_and_one_that_might_not_pass_counts_once():
    assert inherent_us(PATH) == 20 + 30 + 2 * 50


def test_ratios_are_weighted_by_where_the_time_is_spent():
    loads = {"n1": 0.5, "n2": 0.75}
    assert ppr(PATH, loads) == pytest.approx((2 * 50 + 4 * 100) / 150)
    assert hops(PATH) == 1
    assert cpr(PATH, 300) == 2
    assert pr(PATH, loads, 300) == ppr(PATH, loads) + 2


def test_an_overloaded_node_makes_it_infinite():
    assert mm1(1.0) == inf
    assert ppr(PATH, {"n1": 1.2, "n2": 0.1}) == inf


@given(st.floats(0, 0.95), st.lists(st.floats(1, 100), min_size=1, max_size=6))
def test_at_equal_loads_every_query_has_the_same_ratio(load, times):
    """Observation 6.1: f(ρ̄), wherever the operators are."""
    path = [Step(f"n{i % 3}", t) for i, t in enumerate(times)]
    loads = {f"n{i}": load for i in range(3)}
    assert ppr(path, loads) == pytest.approx(mm1(load))


def test_what_is_measured_is_delay_over_processing():
    assert measured_pr(300, 100) == 3
    assert worst([1.5, 3.0]) == 3.0
    assert worst([]) == 1.0
    with pytest.raises(ValueError, match="without processing time"):
        measured_pr(300, 0)
