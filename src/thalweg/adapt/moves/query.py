"""The thing that moves: a windowed join of several streams on one key, cut into buckets.

Source: D-CAPE (seed 002) 1.1, 1.3. All states of a bucket (a partition group) move together, so
that no join crosses nodes; this needs one partition key that all inputs share. Windows are
intervals, as everywhere (`plan/windows.py`): a joined tuple is valid while all its parts are.
D-CAPE stamps it with its newest part and lets it expire by that stamp; `stamps="joined"` does
so, to be compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from thalweg.adapt.moves.operators import Operator
from thalweg.overlay.generator import stable_hash
from thalweg.plan.windows import TimeWindow

Row = tuple[int, int, int, int]  # timestamp, position in its stream, key, value
Parts = tuple[Row | None, ...]  # a row for each input that has been joined so far
Combination = tuple[int, int, int, Parts]  # start, end, key, parts
# A row (a value of each input, the key) is there so many times from start to end; and its key.
Result = tuple[int, int, tuple[int | None, ...], int, int]

INTERVALS, JOINED = "intervals", "joined"


@lru_cache(maxsize=1 << 16)
def hash_of(key: int) -> int:
    """64 bits of BLAKE2b over the key's decimal text: the same at every node."""
    return stable_hash(str(key))


def bucket_of(key: int, buckets: int) -> int:
    return (hash_of(key) * buckets) >> 64


@dataclass(frozen=True, slots=True)
class Query:
    """Join of `streams` on their keys; `residual` (i, j): the value of i is at most that of j."""

    streams: tuple[str, ...]
    windows: tuple[TimeWindow, ...]
    buckets: int = 128  # how finely ranges can be cut
    residual: tuple[tuple[int, int], ...] = ()
    stamps: str = INTERVALS
    operator: Operator | None = None  # on the join

    def __post_init__(self) -> None:
        if len(self.streams) < 2 or len(self.streams) != len(self.windows):
            raise ValueError(f"{len(self.streams)} streams with {len(self.windows)} windows")
        for stream, window in zip(self.streams, self.windows, strict=True):
            if window.length is None:
                raise ValueError(
                    f"{stream} {window} never forgets: its state can't be rebuilt from retained "
                    "inputs; copy it by checkpoints instead"
                )
        if self.stamps not in (INTERVALS, JOINED):
            raise ValueError(f"stamps are {INTERVALS} or {JOINED}, not {self.stamps!r}")
        if self.operator is not None and (why := self.operator.misplaced(len(self.streams))):
            raise ValueError(why)

    @property
    def below(self) -> Operator | None:
        return None if self.operator is None or self.operator.above else self.operator

    @property
    def above(self) -> Operator | None:
        return self.operator if self.operator is not None and self.operator.above else None

    def reach(self, leaf: int) -> int:
        """For how many instants after its timestamp a row may be valid."""
        length = self.windows[leaf].length
        assert length is not None
        return length + self.windows[leaf].slide

    @property
    def longest(self) -> int:
        """When all that was there at τ is gone: τ plus the longest window, with its slide."""
        return max(self.reach(leaf) for leaf in range(len(self.streams)))

    def single(self, leaf: int, row: Row) -> Combination:
        start, end = self.windows[leaf].interval(row[0])
        parts = tuple([row if i == leaf else None for i in range(len(self.streams))])
        return start, end, row[2], parts

    def joined(self, left: Combination, right: Combination) -> Combination | None:
        """Both together; None where they are never valid at once, or the residual says no."""
        start = max(left[0], right[0])
        if min(left[1], right[1]) <= start:
            return None
        parts = tuple([a or b for a, b in zip(left[3], right[3], strict=True)])
        for i, j in self.residual:
            a, b = parts[i], parts[j]
            if a is not None and b is not None and a[3] > b[3]:
                return None
        end = min(left[1], right[1])
        if self.stamps == JOINED:
            end = max(left[1], right[1])  # of the newest part
        return start, end, left[2], parts

    def result(self, combination: Combination) -> Result:
        start, end, key, parts = combination
        row = (*[part[3] for part in parts if part is not None], key)
        if self.operator is not None:
            row = tuple([row[column] for column in self.operator.columns])
        return start, end, row, key, 1


def ids_of(parts: Parts) -> tuple[tuple[int, int], ...]:
    """What a combination consists of: timestamp and position of each part."""
    return tuple([(p[0], p[1]) if p is not None else (-1, -1) for p in parts])
