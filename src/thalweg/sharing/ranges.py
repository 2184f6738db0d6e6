"""Ranges of one expression's values: what comparisons with constants leave of it.

Bounds are values of one SQL type, whose order is Python's (numbers, text, dates and timestamps).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.plan.expr import Value


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range; a closed one is inside."""

    value: Value
    closed: bool

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Range:
    """All values between two bounds; None is no bound. NULL is in no range."""

    low: Bound | None = None
    high: Bound | None = None

    @property
    def is_point(self) -> bool:
        """Whether it holds one value only: an equality."""
        return self.low is not None and self.low == self.high and self.low.closed

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        low, high = _value(self.low), _value(self.high)
        return bool(low > high or (low == high and not (self.low.closed and self.high.closed)))

    def covers(self, other: Range) -> bool:
        """Whether every value of the other is in this one."""
        return other.is_empty or self.meet(other) == other

    def meet(self, other: Range) -> Range:
        """The values in both."""
        return Range(_higher_low(self.low, other.low), _lower_high(self.high, other.high))

    def hull(self, other: Range) -> Range:
        """The smallest range with all values of both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        low = None if self.low is None or other.low is None else _lower_low(self.low, other.low)
        high = (
            None if self.high is None or other.high is None else _higher_high(self.high, other.high)
        )
        return Range(low, high)

    def __str__(self) -> str:
        if self.is_point:
            return f"= {self.low}"
        left = "(-∞" if self.low is None else f"{'[' if self.low.closed else '('}{self.low}"
        right = "∞)" if self.high is None else f"{self.high}{']' if self.high.closed else ')'}"
        return f"{left}, {right}"


EVERYTHING = Range()


def _value(bound: Bound) -> Any:
    return bound.value


def _higher_low(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b, key=lambda x: (_value(x), not x.closed))


def _lower_high(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b, key=lambda x: (_value(x), x.closed))


def _lower_low(a: Bound, b: Bound) -> Bound:
    return min(a, b, key=lambda x: (_value(x), not x.closed))


def _higher_high(a: Bound, b: Bound) -> Bound:
    return max(a, b, key=lambda x: (_value(x), x.closed))
