"""Where results go: rows of all nodes that finish some, netted, instant by instant."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import msgspec

from thalweg.adapt.swap.messages import Final, Row
from thalweg.adapt.swap.query import FOREVER, NEVER, SwapQuery, Values

Key = tuple[int, str, int]  # node, site and number of the row


@dataclass(slots=True)
class Sink:
    query: SwapQuery
    said: int = NEVER  # all instants below it
    rows: dict[Key, Row] = field(default_factory=dict)
    arrived: int = 0
    untaken: dict[int, Final] = field(default_factory=dict)  # by where they end; if they are kept
    _instants: list[tuple[int, Key]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.said = self.query.first

    def shown(self, row: Row) -> Row | None:
        """As results show it, which begin at an instant with all that holds then; None: not."""
        first = self.query.first
        if row.start >= first:
            return row
        return msgspec.structs.replace(row, start=first) if row.end > first else None

    def put(self, key: Key, row: Row) -> None:
        self.rows[key] = row
        if row.start >= self.said:
            heappush(self._instants, (row.start, key))
        if row.end < FOREVER:
            heappush(self._instants, (row.end, key))

    def close(self, key: Key, at: int) -> Row | None:
        """The row as it is now; None if it never was or is gone."""
        row = self.rows.get(key)
        if row is None or row.end <= at:
            return row
        if at <= row.start:
            del self.rows[key]
            return None
        row = msgspec.structs.replace(row, end=at)
        self.rows[key] = row
        heappush(self._instants, (at, key))
        return row

    def say(self, frontier: int) -> tuple[Final | None, list[Key]]:
        """The changelog below the frontier, and the rows that are gone with it."""
        if frontier <= self.said:
            return None, []
        changes: list[tuple[int, str, Values]] = []
        gone: list[Key] = []
        while self._instants and self._instants[0][0] < frontier:
            now = self._instants[0][0]
            net: Counter[Values] = Counter()
            for key in self._at(now):
                row = self.rows.get(key)
                if row is None:
                    continue
                values = self.query.row(row.parts)
                net[values] += row.start == now
                if row.end == now:
                    net[values] -= 1
                    del self.rows[key]
                    gone.append(key)
            changes += _printed(now, net)
        final = Final(self.query.id, self.said, frontier, tuple(changes))
        self.said = frontier
        return final, gone

    def _at(self, now: int) -> list[Key]:
        found: dict[Key, None] = {}
        while self._instants and self._instants[0][0] == now:
            found[heappop(self._instants)[1]] = None
        return list(found)


def _printed(now: int, net: Counter[Values]) -> list[tuple[int, str, Values]]:
    """`-` before `+`, then by row: the one order in which every engine prints."""
    lines = [(now, "+" if n > 0 else "-", row) for row, n in net.items() for _ in range(abs(n))]
    return sorted(lines, key=lambda c: (c[1] == "+", _row_key(c[2])))


def _row_key(row: Values) -> tuple[tuple[bool, Any], ...]:
    return tuple([(value is not None, value if value is not None else 0) for value in row])
