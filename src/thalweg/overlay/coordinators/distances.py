"""How far other nodes are, by the time that a ping takes.

A message may be held up, and never arrives early: so the least of the last few samples counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.overlay.coordinators.messages import UNKNOWN
from thalweg.overlay.protocol import Address

_SAMPLES = 3
_AT_ONCE = 16  # pings: a crowd that joins at once is measured bit by bit


class Distances:
    __slots__ = ("_asked_us", "_samples", "version")

    def __init__(self) -> None:
        self._samples: dict[Address, list[int]] = {}
        self._asked_us: dict[Address, int] = {}
        self.version = 0  # goes up when a distance changes

    def to(self, other: Address) -> int:
        """One way, in microseconds."""
        samples = self._samples.get(other)
        return min(samples) if samples else UNKNOWN

    def observe(self, other: Address, round_trip_us: int) -> None:
        if round_trip_us >= 0:  # the clock may have been set back
            before = self.to(other)
            samples = self._samples.setdefault(other, [])
            samples.append(round_trip_us // 2)
            del samples[:-_SAMPLES]
            self.version += self.to(other) != before

    def to_ask(
        self, now_us: int, others: Iterable[Address], old_us: int, soon_us: int
    ) -> list[Address]:
        """Who is due for a ping: the unknown soon again, the known when they are old; a few."""
        due: list[Address] = []
        for other in others:
            if len(due) == _AT_ONCE:
                break
            asked_us = self._asked_us.get(other)
            wait_us = old_us if len(self._samples.get(other, ())) == _SAMPLES else soon_us
            if asked_us is None or now_us - asked_us >= wait_us:
                self._asked_us[other] = now_us
                due.append(other)
        return due

    def forget_all_but(self, others: Iterable[Address]) -> None:
        """Of those that are no longer near in the tree."""
        kept = set(others)
        if kept.issuperset(self._asked_us) and kept.issuperset(self._samples):
            return
        self.version += 1
        self._samples = {o: s for o, s in self._samples.items() if o in kept}
        self._asked_us = {o: at for o, at in self._asked_us.items() if o in kept}
