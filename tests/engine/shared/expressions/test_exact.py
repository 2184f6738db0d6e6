"""Sums of doubles have no history."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.shared.expressions.exact import lanes_of, quotient, to_pair

DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)


def total(values: list[float], weights: list[int] | None = None) -> tuple[float, float]:
    lanes = lanes_of(np.array(values), np.array(weights or [1] * len(values)))
    high, low = to_pair({n: np.array([column.sum()]) for n, column in lanes.items()}, 1)
    return float(high[0]), float(low[0])


@given(st.lists(DOUBLES, max_size=30))
def test_a_sum_is_the_exact_sum_rounded_once(values):
    exact = sum(map(Fraction, values), Fraction())
    try:
        expected = float(exact)
    except OverflowError:
        return
    assert total(values)[0] == expected


@given(st.lists(DOUBLES, min_size=1, max_size=20), st.lists(DOUBLES, max_size=20))
def test_what_was_added_and_taken_away_leaves_no_trace(kept, passed):
    weights = [1] * len(kept) + [1] * len(passed) + [-1] * len(passed)
    assert total(kept + passed + passed, weights) == total(kept)


def test_large_and_small_do_not_swallow_each_other():
    assert total([1e300, 1.0, 1e-300, -1e300, -1.0])[0] == 1e-300


@pytest.mark.parametrize("count", [1, 3, 7, 10, 49, 1000])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-7, 123456.789, -2.5e10])
def test_the_mean_of_equal_values_is_that_value(value, count):
    high, low = total([value] * count)
    mean = quotient(np.array([high]), np.array([low]), np.array([count]))
    assert mean[0] == value


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
def test_a_mean_is_within_one_rounding_of_the_exact_mean(values):
    high, low = total(values)
    mean = quotient(np.array([high]), np.array([low]), np.array([len(values)]))[0]
    exact = sum(map(Fraction, values), Fraction()) / len(values)
    assert math.isclose(mean, float(exact), rel_tol=1e-15, abs_tol=1e-300)
