"""Lottery and back-pressure together: SwAP's policy (COSMOS 5.2.1).

Each RMO first gets some rows, to learn what it returns. While statistics change, the policy is the
source's: a lottery among the RMOs that have room, back-pressure where nobody holds tickets. Once
they are stable, three rules keep it near the best plan:

- The most selective RMO takes what it has room for.
- When its queue is full, rows overflow to another one only if that holds tickets: a site that
  returns as many rows as it gets takes nothing off the full one's shoulders.
- A share EXPLORE of rows goes to RMOs that are not the best, so that their statistics stay fresh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import WINDOW_ROWS, Bank, Option, by_tickets, roomiest
from thalweg.overlay.generator import Generator

EXPLORE = 0.02  # of rows, once statistics are stable
EXPLORE_MORE = 0.1  # while they change
ENOUGH_ROWS = 100  # consumed, before an RMO's statistics count as known
CHANGED = 0.25  # of selectivity, between the short and the long window, relative
OVERFLOW_BELOW = 0.95  # rows returned for a row: at more, going there first saves nothing


class LotteryAndBackPressure:
    def __init__(self, explore: float = EXPLORE) -> None:
        self.long = Bank()
        self.short = Bank(WINDOW_ROWS / 4)
        self.chosen: Counter[str] = Counter()
        self.stable_rows = 0
        self._explore = explore
        self._owed: dict[int, float] = {}  # rows of exploration that are due, by RMO
        self._sent: dict[int, int] = {}

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        ranked = sorted(options, key=lambda o: (self.long.of(o.target).selectivity, o.target))
        stable = all(self.is_stable(o.target) for o in options)
        chosen, why = self._to_explore(ranked, rows, stable)
        if chosen is None and stable:
            chosen, why = self._best(ranked, generator)
        elif chosen is None:
            chosen, why = self._by_the_source(options, generator)
        if chosen is None:
            return None
        count = min(rows, chosen.room)
        self.chosen[why] += count
        self.stable_rows += count if stable else 0
        self._sent[chosen.target] = self._sent.get(chosen.target, 0) + count
        share = (self._explore if stable else EXPLORE_MORE) / (len(ranked) - 1)
        for other in ranked[1:]:
            owed = self._owed.get(other.target, 0.0) + count * share
            self._owed[other.target] = min(owed, 2.0 * rows)
        if why in ("exploration", "learning"):
            self._owed[chosen.target] = self._owed.get(chosen.target, 0.0) - count
        return chosen.target

    def _to_explore(
        self, ranked: Sequence[Option], rows: int, stable: bool
    ) -> tuple[Option | None, str]:
        for option in ranked:
            if self._sent.get(option.target, 0) < ENOUGH_ROWS and option.room > 0:
                return option, "learning"
        for option in ranked[1:]:
            if self._owed.get(option.target, 0.0) >= rows and option.room >= rows:
                return option, "exploration" if stable else "learning"
        return None, ""

    def _best(self, ranked: Sequence[Option], generator: Generator) -> tuple[Option | None, str]:
        if ranked[0].room > 0:
            return ranked[0], "tickets"
        useful = [o for o in ranked[1:] if self.long.of(o.target).selectivity < OVERFLOW_BELOW]
        return roomiest(useful, generator), "back-pressure"

    def _by_the_source(
        self, options: Sequence[Option], generator: Generator
    ) -> tuple[Option | None, str]:
        able = [o for o in options if o.room > 0]
        winner = by_tickets(able, self.long, generator) if len(able) == len(options) else None
        if winner is not None:
            return winner, "tickets"
        return roomiest(able, generator), "back-pressure"

    def is_stable(self, target: int) -> bool:
        long, short = self.long.of(target), self.short.of(target)
        if long.seen < ENOUGH_ROWS:
            return False
        before, now = long.selectivity, short.selectivity
        return abs(now - before) <= CHANGED * max(before, now) + 2.0 * _noise(before)

    def consumed(self, target: int, rows: int) -> None:
        self.long.of(target).consume(rows)
        self.short.of(target).consume(rows)

    def returned(self, target: int, rows: int) -> None:
        self.long.of(target).give_back(rows)
        self.short.of(target).give_back(rows)


def _noise(selectivity: float) -> float:
    """The standard error of the short window's estimate, as of a count."""
    return float((max(selectivity, 0.01) / (WINDOW_ROWS / 4)) ** 0.5)
