"""Bucket ranges: [lo, hi), and maps from ranges that cover all buckets, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
Range = tuple[int, int]


def overlap(a: Range, b: Range) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def without(whole: Range, parts: list[Range]) -> list[Range]:
    """What of a range none of the others covers."""
    rest, at = [], whole[0]
    for lo, hi in sorted(parts):
        if lo > at:
            rest.append((at, min(lo, whole[1])))
        at = max(at, hi)
        if at >= whole[1]:
            return rest
    return [*rest, (at, whole[1])]


class RangeMap(Generic[T]):
    """A value for each bucket; neighbours that were never told apart share one."""

    def __init__(self, buckets: int, value: T, divide: Callable[[T, Range, Range], tuple[T, T]]):
        self._parts: list[tuple[int, int, T]] = [(0, buckets, value)]
        self._divide = divide

    def __iter__(self) -> Iterator[tuple[int, int, T]]:
        return iter(list(self._parts))

    def replace_all(self, parts: list[tuple[int, int, T]]) -> None:
        covered = without((0, self._parts[-1][1]), [(lo, hi) for lo, hi, _ in parts])
        if covered or sum(hi - lo for lo, hi, _ in parts) != self._parts[-1][1]:
            raise ValueError(f"ranges that leave out {covered} or overlap")
        self._parts = sorted(parts, key=lambda p: p[0])

    def within(self, lo: int, hi: int) -> Iterator[tuple[int, int, T]]:
        """The values of [lo, hi), which is cut out of its surroundings first."""
        self._cut(lo)
        self._cut(hi)
        return iter([p for p in self._parts if lo <= p[0] and p[1] <= hi])

    def set(self, lo: int, hi: int, value: T) -> None:
        self._cut(lo)
        self._cut(hi)
        kept = [p for p in self._parts if p[1] <= lo or hi <= p[0]]
        self._parts = sorted([*kept, (lo, hi, value)], key=lambda p: p[0])

    def _cut(self, at: int) -> None:
        for i, (lo, hi, value) in enumerate(self._parts):
            if lo < at < hi:
                left, right = self._divide(value, (lo, at), (at, hi))
                self._parts[i : i + 1] = [(lo, at, left), (at, hi, right)]
                return
