"""What a transport has met: counted each time, logged the first time."""

from __future__ import annotations

import logging
import threading
from collections import Counter

log = logging.getLogger(__name__)

_MOST_LOGGED = 1_000  # different texts: others' names are in them


class Counts:
    """Of any thread."""

    def __init__(self, who: str) -> None:
        self.who = who
        self._counts: Counter[str] = Counter()
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def add(self, what: str, detail: str = "", count: int = 1) -> None:
        """With a detail, it is worth a line in the log, once for each."""
        with self._lock:
            self._counts[what] += count
            if not detail or detail in self._said or len(self._said) >= _MOST_LOGGED:
                return
            self._said.add(detail)
        log.warning("%s: %s: %s (said once, counted each time)", self.who, what, detail)

    def all(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)
