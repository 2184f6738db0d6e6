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
        self._needed_from: dict[str, int] = {}

    def keep(self, query: str) -> None:
        """Somebody reads this query, and has not said yet from where on."""
        with self._lock:
            self._needed_from.setdefault(query, BEGINNING)

    def acknowledge(self, query: str, needed_from: int) -> None:
        """What the query has said about instants below this one is not needed any more."""
        with self._lock:
            if query in self._needed_from:
                self._needed_from[query] = max(needed_from, self._needed_from[query])

    def forget(self, query: str) -> None:
        with self._lock:
            self._needed_from.pop(query, None)

    def last_past(self, first: int, last: int) -> int:
        """Of these ticks the last one whose results, and those before, nobody needs; `first` - 1 if
        there is none."""
        with self._lock:
            needed = dict(self._needed_from)
        if not needed:
            return last
        first = max(first, last - MOST_TICKS)
        # Instants grow from tick to tick.
        return bisect_left(range(last + 1), True, first, key=lambda t: self._is_read(t, needed)) - 1

    def _is_read(self, tick: int, needed: dict[str, int]) -> bool:
        ranges = self._outputs.ranges(tick)
        return not all(self._is_past(query, since, tick, ranges) for query, since in needed.items())

    def _is_past(
        self, query: str, since: int, tick: int, ranges: dict[str, tuple[int, int]]
    ) -> bool:
        before = [flow for first, flow in self._flows(query) if first <= tick]
        if not before:  # a query that is younger
            return True
        return ranges.get(before[-1], (BEGINNING, BEGINNING))[1] <= since
