"""Readers that must not miss anything: results stay until they say that they have them.

What they have acknowledged is not written down: after a restart nothing goes until each of them
has spoken again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable

from thalweg.engine.shared.state.outputs import Outputs
from thalweg.plan.windows import BEGINNING

MOST_TICKS = 500_000  # that are kept for a reader who does not come

Flows = Callable[[str], list[tuple[int, str]]]  # of a query: from which tick on, in which flow


class Readers:
    def __init__(self, outputs: Outputs, flows: Flows) -> None:
        self._outputs, self._flows = outputs, flows
        self._lock = threading.Lock()
        self._needed_from: dict[str, int] = {}  # by reader
        self._reads: dict[str, str] = {}

    def keep(self, reader: str, query: str | None = None) -> None:
        """Somebody reads a query (the one of the reader's own name, unless it is told), and has not
        said yet from where on."""
        with self._lock:
            self._reads[reader] = query or reader
            self._needed_from.setdefault(reader, BEGINNING)

    def acknowledge(self, reader: str, needed_from: int) -> None:
        """What the query has said about instants below this one is not needed any more."""
        with self._lock:
            if reader in self._needed_from:
                self._needed_from[reader] = max(needed_from, self._needed_from[reader])

    def forget(self, reader: str) -> None:
        with self._lock:
            self._needed_from.pop(reader, None)
            self._reads.pop(reader, None)

    def last_past(self, first: int, last: int) -> int:
        """Of these ticks the last one whose results, and those before, nobody needs; `first` - 1 if
        there is none."""
        with self._lock:
            needed = [(self._reads[reader], at) for reader, at in self._needed_from.items()]
        if not needed:
            return last
        first = max(first, last - MOST_TICKS)
        # Instants grow from tick to tick.
        return bisect_left(range(last + 1), True, first, key=lambda t: self._is_read(t, needed)) - 1

    def _is_read(self, tick: int, needed: list[tuple[str, int]]) -> bool:
        ranges = self._outputs.ranges(tick)
        return not all(self._is_past(query, since, tick, ranges) for query, since in needed)

    def _is_past(
        self, query: str, since: int, tick: int, ranges: dict[str, tuple[int, int]]
    ) -> bool:
        before = [flow for first, flow in self._flows(query) if first <= tick]
        if not before:  # a query that is younger
            return True
        return ranges.get(before[-1], (BEGINNING, BEGINNING))[1] <= since
