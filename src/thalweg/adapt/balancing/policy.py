"""The balancer's policy: when, how much, from whom to whom, by which way.

Source: D-CAPE 3.2 (M_max and M_least, the amount between them), Flux (a threshold, and a pause
between moves). The most loaded gives to the least loaded half of what divides them, if that is
more than a threshold of the mean, and has been so for some looks. The way is the one with the
least predicted cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.adapt.balancing.costs import Prices, Prospect, cheapest
from thalweg.adapt.moves.manager import StartMove
from thalweg.adapt.moves.messages import Load
from thalweg.adapt.moves.query import Query
from thalweg.overlay.protocol import Address


@dataclass(frozen=True, slots=True)
class Settings:
    threshold: float = 0.25  # of the mean load, by which the most loaded must exceed it
    pause_us: int = 3_000_000  # between two moves
    looks: int = 2  # in a row at which the same node must be the most loaded
    period_us: int = 1_000_000  # that a reported rate covers
    instant_us: int = 50_000
    way: str | None = None  # always this one
    by: str = "rate"  # or "tuples": memory, as D-CAPE does
    prices: Prices = field(default_factory=Prices)


@dataclass(slots=True)
class Balancer:
    query: Query
    settings: Settings
    _last_us: int | None = None
    _streak: tuple[Address, int] = ("", 0)
    _since_us: int = 0

    def decide(self, now_us: int, loads: Mapping[Address, tuple[Load, ...]]) -> StartMove | None:
        s = self.settings
        if len(loads) < 2 or (self._last_us is not None and now_us - self._last_us < s.pause_us):
            return None
        totals = {a: sum(float(getattr(x, s.by)) for x in found) for a, found in loads.items()}
        most = max(sorted(totals), key=lambda a: totals[a])
        least = min(sorted(totals), key=lambda a: totals[a])
        mean = sum(totals.values()) / len(totals)
        if totals[most] <= mean * (1 + s.threshold) or not totals[most]:
            self._streak = ("", 0)
            return None
        if now_us - self._since_us < s.period_us and self._streak[0] == most:
            return None  # the same reports
        count = self._streak[1] + 1 if self._streak[0] == most else 1
        self._streak, self._since_us = (most, count), now_us
        if count < s.looks or not any(x.movable for x in loads[most]):
            return None
        self._last_us, self._streak = now_us, ("", 0)
        share = (totals[most] - totals[least]) / 2 / totals[most]
        way, reason = self._way(loads[most], share)
        why = (
            f"{most} has {totals[most]:,.0f} ({s.by}), {least} {totals[least]:,.0f}, the mean is "
            f"{mean:,.0f}; {reason}"
        )
        return StartMove(most, least, share, way, why)

    def _way(self, found: tuple[Load, ...], share: float) -> tuple[str, str]:
        s = self.settings
        if s.way is not None:
            return s.way, f"always by {s.way}"
        window = self.query.longest * s.instant_us / s.period_us
        tuples = share * sum(x.tuples for x in found)
        rate = share * sum(x.rate for x in found)
        prospect = Prospect(tuples, rate, tuples / max(window, 1e-9), window)
        cost = cheapest(prospect, s.prices, linear=self.query.below is None)
        return cost.way, cost.why
