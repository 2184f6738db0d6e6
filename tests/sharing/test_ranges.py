"""Ranges against what they hold, over all small ranges."""

from itertools import product

import pytest

from thalweg.sharing.ranges import EVERYTHING, Bound, Range

VALUES = range(-1, 8)  # of which bounds are 1, 3 and 5: there are values between and beyond
BOUNDS = [None, *(Bound(v, closed) for v in (1, 3, 5) for closed in (True, False))]
RANGES = [Range(low, high) for low, high in product(BOUNDS, BOUNDS)]


def held(values: Range) -> set[float]:
    """Halves are among the values, so that an open range between neighbours is not empty."""
    points = [v + half for v in VALUES for half in (0, 0.5)]
    return {p for p in points if _above(values.low, p) and _below(values.high, p)}


def _above(low: Bound | None, point: float) -> bool:
    return low is None or point > low.value or (low.closed and point == low.value)


def _below(high: Bound | None, point: float) -> bool:
    return high is None or point < high.value or (high.closed and point == high.value)


@pytest.mark.parametrize("one", RANGES, ids=str)
def test_ranges_behave_as_the_sets_that_they_hold(one: Range) -> None:
    assert one.is_empty == (not held(one))
    for other in RANGES:
        assert held(one.meet(other)) == held(one) & held(other)
        assert one.covers(other) == (held(one) >= held(other))
        hull = one.hull(other)
        assert held(hull) >= held(one) | held(other)
        for third in RANGES:
            if held(third) >= held(one) | held(other):
                assert held(third) >= held(hull)


def test_a_point_is_an_equality() -> None:
    assert Range(Bound(3, True), Bound(3, True)).is_point
    assert not Range(Bound(3, True), Bound(4, True)).is_point
    assert not EVERYTHING.is_point


def test_ranges_as_text() -> None:
    assert str(Range(Bound(3, True), Bound(3, True))) == "= 3"
    assert str(Range(Bound(3, False), None)) == "(3, ∞)"
    assert str(Range(None, Bound("a", True))) == "(-∞, 'a']"
