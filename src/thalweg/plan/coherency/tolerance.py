"""What a tolerance allows: four divergence functions behind one small interface.

Source: COSMOS (seed 000) 4.1.1: deviation of values, number of changes, difference of timestamps,
"a customizable divergence function". Here all four say *when* the value that passed last no longer
does, which is all that anybody asks: beyond which values, after how many changes, or from which
instant on. A row is due if the divergence *exceeds* the tolerance; by age, if it is *as old* as it.

Values are compared by the bounds that the held one sets, in the column's own arithmetic (DECIMAL is
exact), so that every node and the reference decide alike. NULL and NaN differ from every number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

Number = Any  # int, float or Decimal: what the column has


@dataclass(frozen=True, slots=True)
class Update:
    """A row of one key, as divergence functions see it."""

    number: int  # of its key's rows, from the first one on
    instant: int
    value: Number  # None is NULL


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a held update does: within these values, up to this number, before this instant."""

    low: Number = None
    high: Number = None
    last_number: int | None = None
    before: int | None = None  # counted from the first row that is held back


class Divergence(Protocol):
    def limits(self, held: Update, first_held_back: Update | None) -> Limits: ...


@dataclass(frozen=True, slots=True)
class Deviation:
    """`TOLERANCE price 0.05`: the value differs by no more than this."""

    amount: Number

    def __post_init__(self) -> None:
        _not_negative(self.amount)

    def limits(self, held: Update, first_held_back: Update | None) -> Limits:
        if is_missing(held.value):
            return Limits()
        return Limits(held.value - self.amount, held.value + self.amount)


@dataclass(frozen=True, slots=True)
class RelativeDeviation:
    """`TOLERANCE price 1 PERCENT`: of the held value; of a held 0, nothing."""

    share: Number

    def __post_init__(self) -> None:
        _not_negative(self.share)

    def limits(self, held: Update, first_held_back: Update | None) -> Limits:
        if is_missing(held.value):
            return Limits()
        margin = abs(held.value) * self.share
        return Limits(held.value - margin, held.value + margin)


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """`TOLERANCE 5 UPDATES`: no more than so many rows behind."""

    updates: int

    def __post_init__(self) -> None:
        _not_negative(self.updates)

    def limits(self, held: Update, first_held_back: Update | None) -> Limits:
        return Limits(last_number=held.number + self.updates)


@dataclass(frozen=True, slots=True)
class Age:
    """`TOLERANCE 2 SECONDS`: the first row that is held back is younger than this."""

    instants: int

    def __post_init__(self) -> None:
        if self.instants < 1:
            raise ValueError("an age of less than an instant holds nothing back: leave it out")

    def limits(self, held: Update, first_held_back: Update | None) -> Limits:
        if first_held_back is None:
            return Limits()
        return Limits(before=first_held_back.instant + self.instants)


Tolerance = Deviation | RelativeDeviation | ChangesSince | Age


def is_missing(value: Number) -> bool:
    return value is None or bool(value != value)  # the latter is NaN


def diverges(limits: Limits, held: Update, newest: Update, instant: int) -> bool:
    """Whether the held update no longer does, now that `newest` is the source's."""
    if limits.last_number is not None:
        return newest.number > limits.last_number
    if limits.before is not None:
        return instant >= limits.before
    if limits.low is None or limits.high is None:  # nothing is held back, or the value is missing
        by_value = is_missing(held.value)
        return by_value and not is_missing(newest.value)
    if newest.value is None or is_missing(newest.value):
        return True
    return bool(newest.value < limits.low or newest.value > limits.high)


def _not_negative(amount: Number) -> None:
    if not amount >= 0:
        raise ValueError(f"a tolerance of {amount}: it can't be negative")
