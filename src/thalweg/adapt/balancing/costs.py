"""What a move would cost, by each way: in work units, from what is known before it begins.

D-CAPE 5.3 compares the ways after the fact; here the same terms are predicted.

    ptlb     the range's work goes on at the sender for the longest window (old with new), while the
             receiver builds up the same: one window of double work, nothing is sent but rows
    mslb     all state over the link, inserted; recomputation of what does not match; the range
             stands still meanwhile
    precopy  as MSLB, and what is written while the copy runs is sent too; only the rest stands
             still
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from thalweg.adapt.moves.ways import MSLB, PRECOPY, PTLB, WAYS


@dataclass(frozen=True, slots=True)
class Prospect:
    """A move that might be."""

    tuples: float  # of the state that would travel
    rate: float  # work of the range in a period, at the sender
    rows: float  # that come in a period
    window: float  # the longest, in periods
    recomputed: float = 0.0  # work to rebuild what would not match

    def __post_init__(self) -> None:
        if min(self.tuples, self.rate, self.rows, self.window, self.recomputed) < 0:
            raise ValueError(f"a prospect has no negative terms: {self}")


@dataclass(frozen=True, slots=True)
class Prices:
    """Work units for a tuple of state over the link, and for a period of standing still."""

    per_tuple: float = 2.0
    standstill: float = 1.0  # × the range's rate, for each period without results
    tuples_per_period: float = 20_000.0  # that a link carries


@dataclass(frozen=True, slots=True)
class Cost:
    way: str
    work: float
    standstill: float  # periods in which the range says nothing
    why: str

    def total(self, prospect: Prospect, prices: Prices) -> float:
        return self.work + prices.standstill * prospect.rate * self.standstill


def costs(prospect: Prospect, prices: Prices) -> list[Cost]:
    p = prospect
    travel = p.tuples / prices.tuples_per_period
    state = p.tuples * prices.per_tuple
    # Old with new shrinks over the window, the receiver's new with new grows: half of each.
    double = p.rate * p.window
    late = p.rows * travel * prices.per_tuple
    return [
        Cost(PTLB, double, 0.0, f"a window of double work: {double:,.0f}"),
        Cost(
            MSLB,
            state + p.recomputed,
            travel + p.recomputed / max(p.rate, 1.0),
            f"{p.tuples:,.0f} tuples and {p.recomputed:,.0f} to recompute, standing still",
        ),
        Cost(
            PRECOPY,
            state + late + p.recomputed,
            late / prices.per_tuple / prices.tuples_per_period + p.recomputed / max(p.rate, 1.0),
            f"{p.tuples:,.0f} tuples while it runs, then {late / prices.per_tuple:,.0f}",
        ),
    ]


def cheapest(prospect: Prospect, prices: Prices, ways: Collection[str] = tuple(WAYS)) -> Cost:
    """Of these ways: PTLB, for one, only moves what is linear."""
    able = [c for c in costs(prospect, prices) if c.way in ways]
    return min(able, key=lambda c: (c.total(prospect, prices), c.way))
