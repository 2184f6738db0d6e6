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
from thalweg.adapt.moves.messages.records import StartMove
from thalweg.adapt.moves.messages.reports import Load
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.ways import PTLB, WAYS
from thalweg.overlay.protocol import Address


@dataclass(frozen=True, slots=True)
class Settings:
    threshold: float = 0.25  # of the mean load, by which the most loaded must exceed it
    pause_us: int = 3_000_000  # between two moves
    looks: int = 2  # in a row at which the same node must be among the most loaded
    at_once: int = 4  # pairs that one decision may name; D-CAPE has one
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
    _streaks: dict[Address, int] = field(default_factory=dict)  # looks at which it had too much
    _since_us: int = 0

    def decide(
        self,
        now_us: int,
        loads: Mapping[Address, tuple[Load, ...]],
        busy: frozenset[Address] = frozenset(),
    ) -> list[StartMove]:
        """The most loaded gives to the least loaded, the second to the second; none is in two."""
        s = self.settings
        if len(loads) < 2 or (self._last_us is not None and now_us - self._last_us < s.pause_us):
            return []
        totals = {a: sum(float(getattr(x, s.by)) for x in found) for a, found in loads.items()}
        mean = sum(totals.values()) / len(totals)
        free = sorted((a for a in totals if a not in busy), key=lambda a: (-totals[a], a))
        over = [a for a in free[: s.at_once] if totals[a] > mean * (1 + s.threshold)]
        if now_us - self._since_us < s.period_us and set(over) <= set(self._streaks):
            return []  # the same reports
        self._streaks = {a: self._streaks.get(a, 0) + 1 for a in over}
        self._since_us = now_us
        found = []
        for most, least in zip(over, sorted(free, key=lambda a: (totals[a], a)), strict=False):
            steady = self._streaks[most] >= s.looks and any(x.movable for x in loads[most])
            if steady and totals[least] < mean:
                del self._streaks[most]
                self._last_us = now_us
                found.append(self._request(most, least, totals, mean, loads[most]))
        return found

    def _request(
        self,
        most: Address,
        least: Address,
        totals: Mapping[Address, float],
        mean: float,
        loads: tuple[Load, ...],
    ) -> StartMove:
        share = (totals[most] - totals[least]) / 2 / totals[most]
        way, reason = self._way(loads, share)
        why = (
            f"{most} has {totals[most]:,.0f} ({self.settings.by}), {least} {totals[least]:,.0f}, "
            f"the mean is {mean:,.0f}; {reason}"
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
        cost = cheapest(
            prospect, s.prices, [w for w in WAYS if w != PTLB or self.query.below is None]
        )
        return cost.way, cost.why
