"""The filter, and the calculators for α."""

from math import e, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.partners.low_pass import (
    filtered,
    least_alpha,
    swing_seen,
    windows_to_reflect,
)

ROUNDING = 1e-8


@given(st.floats(0, 0.99), st.integers(1, 12), st.integers(0, 12), st.floats(0.1, 5))
def test_the_closed_form_is_what_the_filter_does(alpha, rise, stay, factor):
    estimate = 1.0
    for i in range(1, rise + 1):
        estimate = filtered(alpha, estimate, 1 + (factor - 1) * i / rise)
    for _ in range(stay):
        estimate = filtered(alpha, estimate, factor)
    assert swing_seen(alpha, rise, stay, factor) == pytest.approx(estimate, abs=1e-9)


def test_the_example_of_the_source_gives_the_root_of_four_fifths():
    assert least_alpha(1, 1, 2.0, 1.2) == pytest.approx(sqrt(0.8), abs=1e-9)


@given(st.integers(1, 8), st.integers(0, 8), st.floats(0.2, 5), st.floats(1.05, 2))
def test_the_least_alpha_hides_the_swing_and_a_smaller_one_does_not(rise, stay, factor, kappa):
    alpha = least_alpha(rise, stay, factor, kappa)

    def hidden(a):
        seen = swing_seen(a, rise, stay, factor)
        return seen <= kappa + ROUNDING if factor >= 1 else seen >= 1 / kappa - ROUNDING

    assert hidden(min(1.0, alpha + 1e-9))
    assert alpha == 0 or not hidden(alpha - 1e-6)


@pytest.mark.parametrize(("alpha", "windows"), [(0.9, 10), (0.95, 20)])
def test_windows_until_a_change_is_seen_are_those_of_the_source(alpha, windows):
    assert windows_to_reflect(alpha, 2.0, 1 - 1 / (2 * e)) == windows


@given(st.floats(0.05, 0.98), st.floats(1.1, 5), st.floats(0.05, 0.99))
def test_after_that_many_windows_the_share_is_seen_and_not_before(alpha, factor, share):
    needed, estimate, windows = windows_to_reflect(alpha, factor, share), 1.0, 0
    while estimate < share * factor - 1e-9:
        estimate, windows = filtered(alpha, estimate, factor), windows + 1
    assert windows in (needed, needed - 1, needed + 1)  # rounding where they are equal


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="κ"):
        least_alpha(1, 1, 2.0, 1.0)
    with pytest.raises(ValueError, match="α"):
        swing_seen(1.5, 1, 1, 2.0)
    with pytest.raises(ValueError, match="share"):
        windows_to_reflect(0.9, 0.5, 0.9)
