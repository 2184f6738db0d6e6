"""D-CAPE's streams: Poisson arrivals, whose rates change at given seconds."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from thalweg.adapt.moves.query import Row
from thalweg.overlay.generator import Generator, seed_of


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows a second of each input from the beginning on, and from `change_s` on."""

    first: tuple[float, ...]
    then: tuple[float, ...] | None = None
    change_s: float = 0.0

    def rows(
        self, seed: int, seconds: int, keys: int, instants_per_s: int
    ) -> list[tuple[int, int, Row]]:
        """Instant, input, row; in order. Keys are uniform."""
        found = []
        for leaf, first in enumerate(self.first):
            generator = Generator(seed_of(seed, "arrivals", leaf))
            at_s, position = 0.0, 0
            while True:
                changed = self.then is not None and at_s >= self.change_s
                rate = self.then[leaf] if changed and self.then is not None else first
                at_s += -log(1.0 - generator.unit()) / rate
                if at_s >= seconds:
                    break
                instant = int(at_s * instants_per_s)
                row = (instant, position, generator.below(keys), position % 1000)
                found.append((instant, leaf, row))
                position += 1
        return sorted(found)
