"""How often Chord does what, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    successors: int = 4  # r
    stabilise_every_us: int = 1_000_000
    fix_finger_every_us: int = 1_000_000
    find_self_every_us: int = 5_000_000
    answer_within_us: int = 500_000
    attempts: int = 4  # of a lookup, before it is given up
    alone_after_us: int = 20_000_000  # a node that finds no ring for so long may be one itself

    def __post_init__(self) -> None:
        if self.successors < 1:
            raise ValueError(f"{self.successors} successors: a ring needs at least one")
        periods = (self.stabilise_every_us, self.fix_finger_every_us, self.find_self_every_us)
        if min(*periods, self.answer_within_us, self.alone_after_us) < 1 or self.attempts < 1:
            raise ValueError("periods, times to wait and attempts must be above 0")
