"""Sums of doubles have no history."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thalweg.engine.shared.expressions.exact import lanes_of, means, sums

DOUBLES = st.floats(allow_nan=False, allow_infinity=False, width=64)
# Halves of the last place and what is left of them, subnormal numbers, and what overflows.
TRICKY = st.sampled_from(
    (0.1, 0.2, 0.3, 1.0, 1.5, 2.0**-53, 2.0**-54, 5e-324, 1e-310, 1e308, -1e308, 2.0**1023)
)
LARGEST = 1.7976931348623157e308


def lanes(values: list[float], weights: list[int] | None = None) -> dict[int, np.ndarray]:
    of_each = lanes_of(np.array(values), np.array(weights or [1] * len(values)))
    return {n: np.array([column.sum()]) for n, column in of_each.items()}


def total(values: list[float], weights: list[int] | None = None) -> float:
    return float(sums(lanes(values, weights), 1)[0])


def mean(values: list[float]) -> float:
    return float(means(lanes(values), 1, np.array([len(values)]))[0])


def rounded(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


@given(st.lists(DOUBLES | TRICKY, max_size=30))
@example([1.0, 2.0**-53, 5e-324])
@example([LARGEST, LARGEST, -LARGEST])
@example([LARGEST, 2.0**969])
def test_a_sum_is_the_exact_sum_rounded_once(values):
    assert total(values) == rounded(sum(map(Fraction, values), Fraction()))


@given(st.lists(DOUBLES | TRICKY, min_size=1, max_size=30))
@example([1e308, 1e308])
@example([LARGEST, LARGEST, LARGEST])
@example([0.2, 5e-324, 0.3, 0.2])
@example([5e-324, 5e-324, 0.0])
def test_a_mean_is_the_exact_mean_rounded_once(values):
    assert mean(values) == rounded(sum(map(Fraction, values), Fraction()) / len(values))


@given(st.lists(DOUBLES, min_size=1, max_size=20), st.lists(DOUBLES, max_size=20))
def test_what_was_added_and_taken_away_leaves_no_trace(kept, passed):
    weights = [1] * len(kept) + [1] * len(passed) + [-1] * len(passed)
    assert total(kept + passed + passed, weights) == total(kept)


def test_large_and_small_do_not_swallow_each_other():
    assert total([1e300, 1.0, 1e-300, -1e300, -1.0]) == 1e-300


@pytest.mark.parametrize("count", [1, 3, 7, 10, 49, 1000])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-7, 123456.789, -2.5e10])
def test_the_mean_of_equal_values_is_that_value(value, count):
    assert mean([value] * count) == value
