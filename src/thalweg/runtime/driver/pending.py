"""What steps want done, held back until what they persist is durable.

Nothing overtakes: what a later step sends may rest on what an earlier one persists. Steps that
queue up share one commit. A disk that refuses is tried again for as long as it takes; until then
nothing leaves the node.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from thalweg.engine.failures import Unavailable
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.driver.store import Store, Write

log = logging.getLogger(__name__)

Mark = tuple[int, int]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0  # between attempts to write


class Pending:
    """Of the driver's thread alone."""

    def __init__(self, store: Store, stop: threading.Event) -> None:
        self.trouble: str | None = None  # why the disk refuses, at present
        self._store = store
        self._stop = stop
        self._writes: list[Write] = []
        self._acts: list[Callable[[], None]] = []
        self._answers: list[tuple[Future[Any], object]] = []

    def write(self, protocol: str, key: str, value: bytes | None) -> None:
        self._writes.append((protocol, key, value))

    def act(self, act: Callable[[], None]) -> None:
        self._acts.append(act)

    def answer(self, to: Future[Any], value: object) -> None:
        self._answers.append((to, value))

    def mark(self) -> Mark:
        return len(self._writes), len(self._acts)

    def take_back(self, mark: Mark) -> None:
        """All since the mark."""
        writes, acts = mark
        del self._writes[writes:], self._acts[acts:]

    def release(self) -> None:
        """Let go at once what need not wait for the disk."""
        if not self._writes:
            acts, self._acts = self._acts, []
            for act in acts:
                act()

    def flush(self, clock_us: int) -> None:
        """Make it durable, then let it go."""
        if self._writes:
            writes = self._writes
            if not self.on_disk(lambda: self._store.commit(writes, clock_us)):
                self.drop(DriverClosed("the driver was closed before this was durable"))
                return
            self._writes = []
        self.release()
        answers, self._answers = self._answers, []
        for to, value in answers:
            to.set_result(value)

    def drop(self, why: BaseException) -> None:
        """As a crash would."""
        self._writes, self._acts = [], []
        answers, self._answers = self._answers, []
        for to, _ in answers:
            to.set_exception(why)

    def on_disk(self, act: Callable[[], object]) -> bool:
        """Until it succeeds; False if the driver is to stop first."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                act()
            # Full, read-only, failing; or its copy can't be reached: it may pass.
            except (sqlite3.OperationalError, Unavailable) as error:
                if self.trouble is None:
                    log.error(
                        "%s can't be written, and nothing leaves: %s", self._store.path, error
                    )
                self.trouble = str(error)
                if self._stop.wait(pause_s):
                    return False
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
            else:
                self.trouble = None
                return True
