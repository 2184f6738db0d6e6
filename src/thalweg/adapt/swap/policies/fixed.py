"""A static plan: of the links that are open to a row, always the first in a given order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import Option
from thalweg.overlay.generator import Generator


class Fixed:
    def __init__(self, order: Sequence[int] = ()) -> None:
        self._rank = {target: rank for rank, target in enumerate(order)}
        self.chosen: Counter[str] = Counter()

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        winner = min(options, key=lambda o: (self._rank.get(o.target, len(self._rank)), o.target))
        if winner.room <= 0:
            return None
        self.chosen["fixed"] += min(rows, winner.room)
        return winner.target

    def consumed(self, target: int, rows: int) -> None:
        pass

    def returned(self, target: int, rows: int) -> None:
        pass
