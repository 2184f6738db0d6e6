"""A state: what one node of a shape keeps, indexed by the key, stored in segments.

A segment is what one tick added; it never changes once written, so that it can be copied while
the join goes on. It is dropped once all of it has expired. The index forgets expired rows as it
meets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from thalweg.adapt.moves.query import Combination

Segment = tuple[Combination, ...]


class Table:
    __slots__ = ("_by_key", "_last_end", "_open", "segments")

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self._by_key: dict[int, list[Combination]] = {}
        self._last_end: dict[int, int] = {}  # of each segment
        self._open: list[Combination] = []  # of the tick that runs

    def insert(self, combination: Combination) -> None:
        self._by_key.setdefault(combination[2], []).append(combination)
        self._open.append(combination)

    def seal(self, number: int) -> Segment:
        """End the tick: what it added is a segment from now on; empty ones are not kept."""
        segment, self._open = tuple(self._open), []
        if segment:
            self.segments[number] = segment
            self._last_end[number] = max(c[1] for c in segment)
        return segment

    def adopt(self, number: int, segment: Segment) -> None:
        """A segment from elsewhere, under its number there."""
        if number in self.segments:
            raise ValueError(f"segment {number} is here already: adopting is not adding")
        for combination in segment:
            self._by_key.setdefault(combination[2], []).append(combination)
        if segment:
            self.segments[number] = segment
            self._last_end[number] = max(c[1] for c in segment)

    def probe(self, key: int, at: int) -> Sequence[Combination]:
        """Those of the key that are valid at or after an instant which nothing will precede."""
        found = self._by_key.get(key)
        if found is None:
            return ()
        live = [c for c in found if c[1] > at]
        if len(live) < len(found):
            self._keep(key, live)
        return live

    def purge(self, upto: int) -> list[int]:
        """Drop segments of which nothing is valid at `upto` or later; gives their numbers."""
        gone = [n for n, end in self._last_end.items() if end <= upto]
        for number in gone:
            for key in dict.fromkeys(c[2] for c in self.segments[number]):
                self.probe(key, upto)
            del self.segments[number], self._last_end[number]
        return gone

    def rows(self) -> Iterator[Combination]:
        for segment in self.segments.values():
            yield from segment
        yield from self._open

    def size(self, at: int) -> int:
        return sum(c[1] > at for c in self.rows())

    def keys(self) -> Iterable[int]:
        return self._by_key

    def fan_out(self) -> float:
        """Rows per key, a measure of what a probe finds."""
        rows = sum(map(len, self.segments.values())) + len(self._open)
        return rows / len(self._by_key) if self._by_key else 0.0

    def _keep(self, key: int, live: list[Combination]) -> None:
        if live:
            self._by_key[key] = live
        else:
            del self._by_key[key]
