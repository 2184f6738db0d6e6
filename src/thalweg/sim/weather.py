"""What the network does to messages on a bad day, between hosts known by their index.

Each message meets at most one of loss, duplication, delay and reordering, so that one draw decides
for all four. Partitions and clogged links are states that the day's events set and lift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.overlay.generator import Generator

LOST: tuple[int, ...] = ()
ON_TIME: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of all messages, in [0, 1], and how late they can be."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0  # by a little: overtaken by what was sent after it
    delay: float = 0.0  # by a lot
    reordering_us: int = 20_000
    delay_us: int = 1_000_000

    def __post_init__(self) -> None:
        shares = {
            "loss": self.loss,
            "duplication": self.duplication,
            "reordering": self.reordering,
            "delay": self.delay,
        }
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise ValueError(f"{name} of {share}: a share of messages is between 0 and 1")
        if sum(shares.values()) > 1:
            raise ValueError(f"{shares}: together they can't exceed 1")
        if self.reordering_us < 0 or self.delay_us < 0:
            raise ValueError("a delay can't be negative")

    @classmethod
    def of(cls, shares: Mapping[str, float]) -> Rates:
        """By the names of the faults; those not named don't happen."""
        return cls(
            loss=shares.get("loss", 0.0),
            duplication=shares.get("duplication", 0.0),
            reordering=shares.get("reordering", 0.0),
            delay=shares.get("delay", 0.0),
        )


@dataclass(slots=True)
class Weather:
    generator: Generator
    rates: Rates = field(default_factory=Rates)
    side: dict[int, int] = field(default_factory=dict)  # of the present partition; default 0
    cut: frozenset[tuple[int, int]] = frozenset()  # (from side, to side) that nothing passes
    clogged_until_us: dict[tuple[int, int], int] = field(default_factory=dict)  # link -> when

    def delays_us(
        self, now_us: int, source: int, target: int, befell: list[str]
    ) -> tuple[int, ...]:
        """How late each copy of a message is: none for a lost one, two for a doubled one. The
        faults that it met are added to `befell`."""
        if self.cut and (self.side.get(source, 0), self.side.get(target, 0)) in self.cut:
            befell.append("cut off")
            return LOST
        held_us = 0
        if self.clogged_until_us:
            held_us = max(0, self.clogged_until_us.get((source, target), 0) - now_us)
            if held_us:
                befell.append("clogged")
        rates = self.rates
        luck = self.generator.unit() - rates.loss
        if luck < 0:
            befell.append("loss")
            return LOST
        luck -= rates.duplication
        if luck < 0:
            befell.append("duplication")
            return (held_us, held_us + self.generator.below(rates.delay_us + 1))
        luck -= rates.reordering
        if luck < 0:
            befell.append("reordering")
            return (held_us + self.generator.below(rates.reordering_us + 1),)
        luck -= rates.delay
        if luck < 0:
            befell.append("delay")
            return (held_us + self.generator.below(rates.delay_us + 1),)
        return (held_us,) if held_us else ON_TIME
