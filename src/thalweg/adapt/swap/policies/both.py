"""Lottery and back-pressure together: SwAP's policy (COSMOS 5.2.1).

Each RMO first gets some rows, to learn what it returns. Until that is known, the policy is the
source's: a lottery among the RMOs that have room, back-pressure where nobody holds tickets. Once
statistics are stable, three rules keep it near the best plan:

- The most selective RMO takes what it has room for. Those that are about as selective count as
  equal: among them back-pressure decides.
- When these are full, rows overflow to another one only if that holds tickets: a site that returns
  as many rows as it gets takes nothing off the full one's shoulders.
- A share EXPLORE of rows goes to RMOs that are not the best, so that their statistics stay fresh.

An RMO that returns clearly more or fewer rows of late than before has changed. What was before is
then forgotten, and all RMOs are learned again: what changed one may have changed the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import Bank, Option, Tickets, by_tickets, roomiest
from thalweg.overlay.generator import Generator

EXPLORE = 0.02  # of rows, once statistics are stable
ENOUGH_ROWS = 100  # consumed, before an RMO's statistics count as known
LONG_ROWS, SHORT_ROWS = 600, 100  # what is compared, and of late
CHANGED = 4.0  # standard deviations of the short window's estimate
AS_GOOD, NEARLY = 1.25, 0.05  # times the best one's selectivity, and a little
OVERFLOW_BELOW = 0.95  # rows returned for a row: at more, going there first saves nothing


class LotteryAndBackPressure:
    def __init__(self, explore: float = EXPLORE) -> None:
        self.long = Bank(LONG_ROWS)
        self.short = Bank(SHORT_ROWS)
        self.chosen: Counter[str] = Counter()
        self.stable_rows = 0
        self.changes = 0  # that were noticed
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
        self.stable_rows += count if stable and why != "learning" else 0
        self._sent[chosen.target] = self._sent.get(chosen.target, 0) + count
        share = self._explore / (len(ranked) - 1)
        for other in ranked[1:]:
            owed = self._owed.get(other.target, 0.0) + count * share
            self._owed[other.target] = min(owed, 2.0 * rows)
        if why == "exploration":
            self._owed[chosen.target] -= count
        return chosen.target

    def _to_explore(
        self, ranked: Sequence[Option], rows: int, stable: bool
    ) -> tuple[Option | None, str]:
        for option in ranked:
            if self._sent.get(option.target, 0) < ENOUGH_ROWS and option.room > 0:
                return option, "learning"
        for option in ranked[1:] if stable else ():
            if self._owed.get(option.target, 0.0) >= rows and option.room >= rows:
                return option, "exploration"
        return None, ""

    def _best(self, ranked: Sequence[Option], generator: Generator) -> tuple[Option | None, str]:
        found = [self.long.of(o.target).selectivity for o in ranked]
        limit = found[0] * AS_GOOD + NEARLY
        equal = [o for o, s in zip(ranked, found, strict=True) if s <= limit]
        if (chosen := roomiest(equal, generator)) is not None:
            return chosen, "tickets" if len(equal) == 1 else "back-pressure"
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
        return self.long.of(target).seen >= ENOUGH_ROWS

    def consumed(self, target: int, rows: int) -> None:
        self.long.of(target).consume(rows)
        self.short.of(target).consume(rows)
        self._notice(target)

    def returned(self, target: int, rows: int) -> None:
        self.long.of(target).give_back(rows)
        self.short.of(target).give_back(rows)

    def _notice(self, target: int) -> None:
        long, short = self.long.of(target), self.short.of(target)
        if short.consumed < SHORT_ROWS or long.seen < 2 * ENOUGH_ROWS:
            return
        noise = (max(long.selectivity, 0.05) / short.consumed) ** 0.5
        if abs(short.selectivity - long.selectivity) > CHANGED * noise:
            self.changes += 1
            self._sent.clear()
            for known in self.long.tickets:
                of_late = self.short.of(known)
                self.long.tickets[known] = Tickets(LONG_ROWS, of_late.consumed, of_late.returned)
