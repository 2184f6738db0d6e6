"""Queries that were moved rest for a while, so that moves come to an end.

One that was told to move just now rests until reports show it. One that was moved to make things
better, and not for the bound, rests longer each time: two levels may disagree about a query for
ever. The bound is kept meanwhile.
"""

from __future__ import annotations

from thalweg.overlay.distribution.picture import Heading

_FRESH_US = 300_000_000  # so long after its rest, a query has forgotten its moves


class Rests:
    def __init__(self, calm_us: int) -> None:
        self._calm_us = calm_us  # so long a move takes to be seen in reports
        self._until_us: dict[str, int] = {}
        self._heading: dict[str, dict[int, Heading]] = {}  # by name, then by level
        self._tired: dict[str, tuple[int, int]] = {}  # how often moved, and until when it rests

    def move(self, now_us: int, name: str) -> None:
        self._until_us[name] = now_us + 2 * self._calm_us
        self._heading.pop(name, None)

    def head(self, now_us: int, name: str, level: int, heading: Heading) -> None:
        """It moves, as far as the cluster of that level is concerned so."""
        until_us = self._until_us.get(name, 0)
        if until_us < now_us + 2 * self._calm_us:
            self.move(now_us, name)
        self._heading.setdefault(name, {})[level] = heading

    def heading(self, now_us: int, level: int) -> dict[str, Heading]:
        """Of those that were told to move just now: where to."""
        moving = self.moving(now_us)
        return {n: at[level] for n, at in self._heading.items() if n in moving and level in at}

    def tire(self, now_us: int, name: str) -> None:
        times = self._tired.get(name, (0, 0))[0] + 1
        self._tired[name] = (times, now_us + (self._calm_us << min(2 * times, 10)))

    def moving(self, now_us: int) -> dict[str, int]:
        """What was told to move just now, and until when it rests."""
        for name in [n for n, until_us in self._until_us.items() if until_us <= now_us]:
            del self._until_us[name]
            self._heading.pop(name, None)
        return self._until_us

    def all(self, now_us: int) -> dict[str, int]:
        """Those, and what was moved to make things better."""
        since_us = now_us - _FRESH_US
        for name in [n for n, (_, until_us) in self._tired.items() if until_us <= since_us]:
            del self._tired[name]
        weary = {name: until for name, (_, until) in self._tired.items() if until > now_us}
        return {**self.moving(now_us), **weary}
