"""The kernel: a heap of things to do, in order of time, and of scheduling where times are equal.

It knows nothing of nodes or messages. Times are integer microseconds since the start of the run, so
that no sum depends on rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US


class Kernel:
    __slots__ = ("_heap", "_scheduled", "events", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0

    def at(self, when_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do it then. The past is refused: it would make time run backwards."""
        if when_us < self.now_us:
            raise ValueError(
                f"nothing can be scheduled {self.now_us - when_us} µs in the past "
                f"(now {self.now_us} µs, wanted {when_us} µs): delays can't be negative"
            )
        self._scheduled += 1
        heappush(self._heap, (when_us, self._scheduled, action, arguments))

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_us + delay_us, action, *arguments)

    @property
    def pending(self) -> int:
        return len(self._heap)

    def run_until(self, end_us: int) -> None:
        """Do all that is due up to and including `end_us`; the clock stands there afterwards."""
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            when_us, _, action, arguments = heappop(heap)
            self.now_us = when_us
            self.events += 1
            action(*arguments)
        self.now_us = max(self.now_us, end_us)
