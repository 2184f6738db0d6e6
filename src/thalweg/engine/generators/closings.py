"""Closings of auctions in order of time, from durations that are known by item number.

Items open at a steady rate, so a block of items opens in a known slice of time. An item closes in
the slice of its own block or a few later: each block is sorted once and cut into the slices in
which its items close, and a slice is complete when the block that opens in it has been cut.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from thalweg.engine.generators.base import BLOCK_ROWS
from thalweg.engine.generators.noise import Floats, Ints

SIGMA = 0.6
SHORTEST, LONGEST = 0.25, 4.0  # an auction's duration, in medians

Piece = tuple[Ints, Ints]  # times and items, by (time, item)


@dataclass(frozen=True, slots=True)
class Closings:
    """`closes_at` gives the items' closing times in ms since the first opening."""

    closes_at: Callable[[Ints], Ints]
    block_ms: float  # in which a block of items opens
    longest_ms: float  # for which an item may be open

    def slices(self, start: int) -> Iterator[tuple[int, Piece]]:
        """(number of the first closing, closings), from the slice with closing `start` or earlier.

        What is drawn anew is only what may still have been open then.
        """
        reach = math.ceil(self.longest_ms / self.block_ms) + 1  # blocks that reach into a slice
        current = start // BLOCK_ROWS  # no more can have closed by then than have opened
        first_block = max(0, current - reach)
        pending: defaultdict[int, list[Piece]] = defaultdict(list)
        closed = first_block * BLOCK_ROWS
        for block in range(first_block, current):
            for target, piece in self._pieces(block):
                if target < current:
                    closed += len(piece[0])
                else:
                    pending[target].append(piece)
        while True:
            for target, piece in self._pieces(current):
                pending[target].append(piece)
            found = pending.pop(current, [])
            if found:
                times, items = (np.concatenate(part) for part in zip(*found, strict=True))
                order = np.argsort(times, kind="stable")
                yield closed, (times[order], items[order])
                closed += len(times)
            current += 1

    def _pieces(self, block: int) -> Iterator[tuple[int, Piece]]:
        """A block's closings, cut: (slice, piece)."""
        items = np.arange(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS, dtype=np.int64)
        times = self.closes_at(items)
        order = np.argsort(times, kind="stable")
        times, items = times[order], items[order]
        slices = (times / self.block_ms).astype(np.int64)
        cuts = np.flatnonzero(np.diff(slices)) + 1
        for low, high in zip([0, *cuts], [*cuts, len(items)], strict=True):
            yield int(slices[low]), (times[low:high], items[low:high])


def durations(chosen: Floats) -> Floats:
    """Log-normal, in units of the median, cut at both ends; `chosen` is uniform."""
    return np.asarray(np.interp(chosen, *_QUANTILES))


def _quantiles(points: int = 513) -> tuple[Floats, Floats]:
    bell = NormalDist(0, SIGMA)
    low, high = bell.cdf(math.log(SHORTEST)), bell.cdf(math.log(LONGEST))
    shares = np.linspace(0.0, 1.0, points)
    values = [math.exp(bell.inv_cdf(low + (high - low) * share)) for share in shares]
    return shares, np.asarray(values)


_QUANTILES = _quantiles()
