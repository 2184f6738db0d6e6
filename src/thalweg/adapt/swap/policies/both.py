"""Lottery and back-pressure together: SwAP's policy (COSMOS 5.2.1).

While statistics are new or have just changed, it is the source's: a lottery among the RMOs that
have room, back-pressure where nobody holds tickets. Once they are stable, three rules keep it near
the best plan:

- The most selective RMO takes what it has room for.
- When its queue is full, rows overflow to another one only if that holds tickets: a site that
  returns as many rows as it gets takes nothing off the full one's shoulders.
- One in EXPLORE rows goes to an RMO that is not the best, so that its statistics stay fresh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import WINDOW_ROWS, Bank, Option, by_tickets, roomiest
from thalweg.overlay.generator import Generator

EXPLORE = 0.02
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

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        if not all(self.is_stable(o.target) for o in options):
            return self._by_the_source(options, rows, generator)
        ranked = sorted(options, key=lambda o: (self.long.of(o.target).selectivity, o.target))
        best, why = ranked[0], "tickets"
        chosen = best if best.room > 0 else None
        for other in ranked[1:]:
            if self._owed.get(other.target, 0.0) >= rows and other.room >= rows:
                chosen, why = other, "exploration"
        if chosen is None:
            useful = [
                o
                for o in ranked[1:]
                if o.room > 0 and self.long.of(o.target).selectivity < OVERFLOW_BELOW
            ]
            chosen, why = roomiest(useful, generator), "back-pressure"
        if chosen is None:
            return None
        count = min(rows, chosen.room)
        self.stable_rows += count
        self.chosen[why] += count
        for other in ranked[1:]:
            owed = self._owed.get(other.target, 0.0) + count * self._explore / (len(ranked) - 1)
            self._owed[other.target] = min(owed, 2.0 * rows)
        if why == "exploration":
            self._owed[chosen.target] -= count
        return chosen.target

    def _by_the_source(
        self, options: Sequence[Option], rows: int, generator: Generator
    ) -> int | None:
        able = [o for o in options if o.room > 0]
        if not able:
            return None
        winner, why = by_tickets(able, self.long, generator), "tickets"
        if winner is None or len(able) < len(options):
            winner, why = roomiest(able, generator), "back-pressure"
        assert winner is not None
        self.chosen[why] += min(rows, winner.room)
        return winner.target

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
