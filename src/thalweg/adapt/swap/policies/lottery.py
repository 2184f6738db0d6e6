"""Lottery routing (Avnur and Hellerstein's eddies, as in COSMOS 5.2.1): tickets alone decide.

It sees selectivities, and is blind to slow links and loaded sites: a winner whose queue is full is
waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import Bank, Option, by_tickets
from thalweg.overlay.generator import Generator


class Lottery:
    def __init__(self) -> None:
        self.bank = Bank()
        self.chosen: Counter[str] = Counter()
        self._winner: int | None = None

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        found = {o.target: o for o in options}
        winner = found.get(self._winner) if self._winner is not None else None
        why = "tickets"
        if winner is None:
            winner = by_tickets(options, self.bank, generator)
        if winner is None:
            winner, why = generator.choice(options), "chance"
        if winner.room <= 0:
            self._winner = winner.target
            return None
        self._winner = None
        self.chosen[why] += min(rows, winner.room)
        return winner.target

    def consumed(self, target: int, rows: int) -> None:
        self.bank.of(target).consume(rows)

    def returned(self, target: int, rows: int) -> None:
        self.bank.of(target).give_back(rows)
