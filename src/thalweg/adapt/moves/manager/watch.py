"""What the manager knows of processors: who reports, what they have, who is lost.

A processor that has not reported for `lost_us` counts as lost. The union is then asked to go on
with another one; if the lost one was only silent, it says rows that nobody reads, until a split
tells it.
"""

from __future__ import annotations

from thalweg.adapt.moves.directory import Times
from thalweg.adapt.moves.messages.reports import Fence, Followed, HotKey, Load, Report
from thalweg.overlay.protocol import Address


class Watch:
    def __init__(self, times: Times) -> None:
        self.loads: dict[Address, tuple[Load, ...]] = {}
        self.register: tuple[Followed, ...] = ()  # whom the union follows
        self.hottest: dict[Address, HotKey] = {}
        self.fenced = 0
        self._times = times
        self._heard_us: dict[Address, int] = {}

    def report(self, now_us: int, sender: Address, message: Report) -> None:
        self._heard_us[sender] = now_us
        self.loads[sender] = message.loads
        self.hottest.pop(sender, None)
        if message.hottest is not None:
            self.hottest[sender] = message.hottest

    def goodbye(self, sender: Address) -> None:
        self._heard_us.pop(sender, None)
        self.loads.pop(sender, None)
        self.hottest.pop(sender, None)

    def processors(self, now_us: int) -> list[Address]:
        """Those that count as alive."""
        for address, heard_us in list(self._heard_us.items()):
            if now_us - heard_us > self._times.lost_us:
                self.goodbye(address)
        return sorted(self._heard_us)

    def fences(self, now_us: int) -> list[Fence]:
        """For each range that the union reads from somebody who is lost: who shall go on."""
        up = self.processors(now_us)
        found = []
        for part in self.register:
            if up and any(owner not in up for owner in part.owners):
                least = min(up, key=lambda a: (self._rate(a), a))
                found.append(Fence(part.lo, part.hi, part.epoch, least))
        self.fenced += len(found)
        return found

    def _rate(self, address: Address) -> int:
        return sum(load.rate for load in self.loads.get(address, ()))
