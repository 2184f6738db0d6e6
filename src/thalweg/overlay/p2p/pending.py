"""Combinations at who asked, until they are over: what they change, instant by instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.tuples import Id, Parts, Value, ids_of

Ids = tuple[Id, ...]
Change = tuple[int, str, tuple[Value, ...]]


class Pending:
    __slots__ = ("_ends", "_query", "_starts", "parts")

    def __init__(self, query: JoinQuery) -> None:
        self.parts: dict[Ids, Parts] = {}
        self._query = query
        self._starts: list[tuple[int, Ids]] = []  # heaps
        self._ends: list[tuple[int, Ids]] = []

    def __contains__(self, ids: Ids) -> bool:
        return ids in self.parts

    def __iter__(self) -> Iterator[Ids]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def add(self, parts: Parts, said: int) -> None:
        """A combination, of which all below `said` was said before."""
        ids = ids_of(parts)
        self.parts[ids] = parts
        start, end = self._query.interval(parts)
        if start >= said:
            heappush(self._starts, (start, ids))
        heappush(self._ends, (end, ids))

    def leave_out(self, source: str, said: int) -> list[Ids]:
        """Of combinations that were not said yet, those with a tuple of this source; they go."""
        gone = [
            ids
            for ids, parts in self.parts.items()
            if any(p.source == source for p in parts) and max(p.ts for p in parts) >= said
        ]
        for ids in gone:
            del self.parts[ids]
        return gone

    def changes(self, horizon: int, since: int, upto: int) -> tuple[tuple[Change, ...], list[Ids]]:
        """The changelog in [since, upto), and the combinations that are over by then. One with a
        tuple from before the horizon does not count."""
        deltas: dict[int, Counter[tuple[Value, ...]]] = {}
        over: list[Ids] = []
        row = self._query.row
        while self._starts and self._starts[0][0] < upto:
            start, ids = heappop(self._starts)
            parts = self.parts.get(ids)
            if parts is None:
                continue  # left out
            if min(p.ts for p in parts) < horizon:
                over.append(ids)
                del self.parts[ids]
            else:
                deltas.setdefault(start, Counter())[row(parts)] += 1
        while self._ends and self._ends[0][0] < upto:
            end, ids = heappop(self._ends)
            ended = self.parts.pop(ids, None)
            if ended is not None:
                over.append(ids)
                deltas.setdefault(end, Counter())[row(ended)] -= 1
        return tuple(_printed(deltas)), over


def _printed(deltas: dict[int, Counter[tuple[Value, ...]]]) -> Iterator[Change]:
    """In printing order: by instant, what goes before what comes, rows by value."""
    for instant in sorted(deltas):
        net = deltas[instant]
        for op, sign in (("-", -1), ("+", 1)):
            for row in sorted((r for r in net if sign * net[r] > 0), key=_row_key):
                for _ in range(abs(net[row])):
                    yield instant, op, row


def _row_key(row: tuple[Value, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((v is not None, v if v is not None else 0) for v in row)
