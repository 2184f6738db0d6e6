"""The kernel: a calendar of things to do, by time, and by order of scheduling at equal times.

It knows nothing of nodes or messages. Times are integer microseconds since the start of the run, so
that no sum depends on rounding.

A calendar (Brown, *Calendar queues*, 1988) keeps what is far off unsorted, page by page, and puts a
page in order when its time has come. So a timer costs an append, however many thousands of nodes
have set theirs; in one heap of them all, each event would wander through memory long out of cache.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US

OBJECTS_BETWEEN_COLLECTIONS = 100_000  # made and not freed, while a calendar runs

PAGE_BITS = 12  # a page is 4,096 µs: dozens of entries in a busy network, and few empty ones

Entry = tuple[int, int, Callable[..., None], tuple[Any, ...]]  # when, in which order, what


class Kernel:
    __slots__ = ("_later", "_open", "_page", "_pages", "_scheduled", "events", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.events = 0
        self._scheduled = 0
        self._page = -1  # the number of the open one
        self._open: list[Entry] = []  # what is left of it, a heap
        self._later: dict[int, list[Entry]] = {}  # pages beyond the open one, unsorted
        self._pages: list[int] = []  # their numbers, a heap

    def at(self, when_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do it then. The past is refused: it would make time run backwards."""
        if when_us < self.now_us:
            raise ValueError(
                f"nothing can be scheduled {self.now_us - when_us} µs in the past "
                f"(now {self.now_us} µs, wanted {when_us} µs): delays can't be negative"
            )
        self._scheduled += 1
        entry = (when_us, self._scheduled, action, arguments)
        page = when_us >> PAGE_BITS
        if page <= self._page:
            heappush(self._open, entry)
        elif page in self._later:
            self._later[page].append(entry)
        else:
            self._later[page] = [entry]
            heappush(self._pages, page)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_us + delay_us, action, *arguments)

    @property
    def pending(self) -> int:
        return len(self._open) + sum(map(len, self._later.values()))

    def run_until(self, end_us: int) -> None:
        """Do all that is due up to and including `end_us`; the clock stands there afterwards."""
        with _rare_collections():
            while self._turn_to(end_us):
                entries = self._open
                while entries and entries[0][0] <= end_us:
                    when_us, _, action, arguments = heappop(entries)
                    self.now_us = when_us
                    self.events += 1
                    action(*arguments)
        self.now_us = max(self.now_us, end_us)

    def _turn_to(self, end_us: int) -> bool:
        """Open the next page with entries, unless the present one has some; is anything due?"""
        if not self._open and self._pages and self._pages[0] << PAGE_BITS <= end_us:
            self._page = heappop(self._pages)
            self._open = self._later.pop(self._page)
            self._open.sort()  # a sorted list is a heap
        return bool(self._open) and self._open[0][0] <= end_us


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Nearly all that a run makes is freed by itself; only a crash leaves cycles behind.

    With thousands of nodes, what is young holds all that was scheduled or learned since the last
    collection, most of it in use: to look through it for every 700 objects took a seventh of the
    time. What the rest of the program makes is not this one's affair.
    """
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
