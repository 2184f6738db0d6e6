"""Which share of rows has taken which way lately: what EXPLAIN draws over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise

SAMPLE_S, PERIOD_S, PERIODS = 1.0, 10.0, 6

Way = tuple[str, int, int]  # a query, a node of its plan, the next


class Shares:
    """Counts of rows by way, as they were at each of the last seconds."""

    def __init__(self) -> None:
        kept = int(PERIOD_S / SAMPLE_S) * PERIODS + 1
        self._samples: deque[tuple[float, Mapping[Way, int]]] = deque(maxlen=kept)

    def note(self, now_s: float, routed: Mapping[Way, int]) -> None:
        if not self._samples or now_s - self._samples[-1][0] >= SAMPLE_S:
            self._samples.append((now_s, dict(routed)))

    def periods(self, way: Way, now_s: float, rows: int) -> list[int]:
        """Rows in each of the last periods, the oldest first; none where nothing is known."""
        ends = [now_s - PERIOD_S * n for n in range(PERIODS, -1, -1)]
        counts = [self._at(way, end) for end in ends[:-1]] + [rows]
        return [
            max(0, after - before)
            for before, after in pairwise(counts)
            if before is not None and after is not None
        ]

    def _at(self, way: Way, instant_s: float) -> int | None:
        """The count at a moment; None: before all that is known."""
        found = None
        for at, counts in self._samples:
            if at > instant_s:
                break
            found = counts.get(way, 0)
        return found
