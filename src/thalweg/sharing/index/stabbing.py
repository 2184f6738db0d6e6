"""Which of many integer ranges hold a code: one index per kind of range.

Every index answers a whole array of codes with pairs (place in the array, range), and costs what
it answers. A family's ranges on one expression are of one kind:

| kind      | ranges are         | index                                            |
|-----------|--------------------|--------------------------------------------------|
| Points    | single codes       | ranges by code                                   |
| Floors    | open to the right  | ranges by their first code: those before match   |
| Ceilings  | open to the left   | ranges by their last code: those behind match    |
| Between   | bounded            | bins of codes, each with the ranges that meet it |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from thalweg.sharing.index.codes import Ints

ENTRIES = 4_000_000  # of all bins together, at most about this


class Index(Protocol):
    def counts(self, codes: Ints) -> Ints:
        """For each code, how many pairs `pairs` gives: at least those that match."""
        ...

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]: ...


@dataclass(frozen=True)
class Slices:
    """Lists laid end to end: list i is `items[starts[i]:starts[i + 1]]`."""

    items: Ints
    starts: Ints

    @classmethod
    def by(cls, keys: Ints, items: Ints, count: int) -> Slices:
        """The items of each key 0, 1, …, in order."""
        order = np.argsort(keys, kind="stable")
        sizes = np.bincount(keys, minlength=count)
        return cls(items[order], np.concatenate([[0], np.cumsum(sizes)]))

    def sizes(self, lists: Ints) -> Ints:
        return self.starts[lists + 1] - self.starts[lists]

    def pairs(self, lists: Ints) -> tuple[Ints, Ints]:
        return spread(self.starts[lists], self.sizes(lists), self.items)


def spread(first: Ints, size: Ints, items: Ints) -> tuple[Ints, Ints]:
    """For each i the items first[i], …, first[i] + size[i] - 1, with i beside each."""
    rows = np.repeat(np.arange(len(size)), size)
    ends = np.cumsum(size)
    within = np.arange(len(rows)) - np.repeat(ends - size, size)
    return rows, items[np.repeat(first, size) + within]


@dataclass(frozen=True)
class Points:
    at: Slices

    @classmethod
    def of(cls, low: Ints, high: Ints, count: int) -> Points:
        return cls(Slices.by(low, np.arange(len(low)), count))

    def counts(self, codes: Ints) -> Ints:
        return np.where(codes < 0, 0, self.at.sizes(np.maximum(codes, 0)))

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]:
        known = np.flatnonzero(codes >= 0)
        rows, found = self.at.pairs(codes[known])
        return known[rows], found


@dataclass(frozen=True)
class Floors:
    order: Ints  # ranges by their first code
    before: Ints  # code -> how many begin there or before

    @classmethod
    def of(cls, low: Ints, high: Ints, count: int) -> Floors:
        order = np.argsort(low, kind="stable")
        return cls(order, np.searchsorted(low[order], np.arange(count), side="right"))

    def counts(self, codes: Ints) -> Ints:
        return np.where(codes < 0, 0, self.before[np.maximum(codes, 0)])

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]:
        return spread(np.zeros(len(codes), dtype=np.int64), self.counts(codes), self.order)


@dataclass(frozen=True)
class Ceilings:
    order: Ints  # ranges by their last code, the furthest first
    behind: Ints  # code -> how many end there or behind

    @classmethod
    def of(cls, low: Ints, high: Ints, count: int) -> Ceilings:
        order = np.argsort(-high, kind="stable")
        before = np.searchsorted(np.sort(high), np.arange(count), side="left")
        return cls(order, len(high) - before)

    def counts(self, codes: Ints) -> Ints:
        return np.where(codes < 0, 0, self.behind[np.maximum(codes, 0)])

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]:
        return spread(np.zeros(len(codes), dtype=np.int64), self.counts(codes), self.order)


@dataclass(frozen=True)
class Between:
    low: Ints
    high: Ints
    width: int  # codes to a bin
    bins: Slices

    @classmethod
    def of(cls, low: Ints, high: Ints, count: int, entries: int = ENTRIES) -> Between:
        """Bins as narrow as the number of entries allows: with one code to a bin it is exact."""
        filled = np.flatnonzero(low <= high)  # an empty range meets no bin
        covered = int((high[filled] - low[filled] + 1).sum())
        width = max(1, -(-covered // max(1, entries)))
        first, last = low[filled] // width, high[filled] // width
        rows, bins = spread(first, last - first + 1, np.arange(count // width + 1))
        return cls(low, high, width, Slices.by(bins, filled[rows], count // width + 1))

    def counts(self, codes: Ints) -> Ints:
        return np.where(codes < 0, 0, self.bins.sizes(np.maximum(codes, 0) // self.width))

    def pairs(self, codes: Ints) -> tuple[Ints, Ints]:
        known = np.flatnonzero(codes >= 0)
        rows, found = self.bins.pairs(codes[known] // self.width)
        rows = known[rows]
        if self.width == 1:
            return rows, found
        met = (self.low[found] <= codes[rows]) & (codes[rows] <= self.high[found])
        return rows[met], found[met]
