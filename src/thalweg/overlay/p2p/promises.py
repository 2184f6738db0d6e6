"""To whom a node has promised which buckets: whose word counts for its tuples.

Invariants: a promise is only replaced by one of a higher number, or by one of the same life whose
number is not lower; so of two owners that claim a bucket from the same sources, one has to give way
at every source alike.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.tuples import Runs, without
from thalweg.overlay.protocol import Address


class Promise(msgspec.Struct, frozen=True, array_like=True):
    first: int
    last: int
    number: int
    owner: Address
    life: str


class Promises:
    __slots__ = ("entries",)

    def __init__(self, entries: list[Promise] | None = None) -> None:
        self.entries = entries or []  # by `first`, without overlaps

    def of(self, bucket: int) -> Promise | None:
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            entry = self.entries[middle]
            if entry.last < bucket:
                low = middle + 1
            elif entry.first > bucket:
                high = middle
            else:
                return entry
        return None

    def within(self, runs: Runs) -> list[Promise]:
        return [e for e in self.entries if any(a <= e.last and e.first <= b for a, b in runs)]

    def highest(self, runs: Runs, life: str) -> int:
        """The highest number that another life was promised in these buckets."""
        return max([e.number for e in self.within(runs) if e.life != life], default=0)

    def highest_of(self, runs: Runs, life: str) -> int:
        """The highest number that this life was promised in these buckets."""
        return max([e.number for e in self.within(runs) if e.life == life], default=0)

    def all_of(self, runs: Runs, life: str) -> bool:
        """Whether each of these buckets is promised to this life already."""
        inside = [e for e in self.within(runs) if e.life == life]
        return not without(runs, [(e.first, e.last) for e in inside])

    def give(self, runs: Runs, number: int, owner: Address, life: str) -> None:
        kept = [
            Promise(first, last, e.number, e.owner, e.life)
            for e in self.entries
            for first, last in without(((e.first, e.last),), runs)
        ]
        kept += [Promise(a, b, number, owner, life) for a, b in runs]
        self.entries = sorted(kept, key=lambda e: e.first)
