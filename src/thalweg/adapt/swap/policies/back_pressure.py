"""Back-pressure (COSMOS 5.1.1): the site whose queue empties fastest gets the next rows.

It sees speed and load, and selectivity only as far as a site that makes more rows is slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.swap.policies.policy import Option, roomiest
from thalweg.overlay.generator import Generator


class BackPressure:
    def __init__(self) -> None:
        self.chosen: Counter[str] = Counter()

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        winner = roomiest(options, generator)
        if winner is None:
            return None
        self.chosen["back-pressure"] += min(rows, winner.room)
        return winner.target

    def consumed(self, target: int, rows: int) -> None:
        pass

    def returned(self, target: int, rows: int) -> None:
        pass
