"""How fast bytes may pass, so that what is large leaves room for what is urgent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_AHEAD_S = 0.02  # so much may go at once


class Pace:
    """So many bytes in a second, for all who ask together; None: as fast as they can."""

    def __init__(
        self,
        bytes_per_s: float | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._now, self._sleep = bytes_per_s, now, sleep
        self._free = 0.0  # when the next byte may go
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Returns when so many bytes may go."""
        if self._rate is None:
            return
        with self._lock:
            self._free = max(self._free, self._now() - _AHEAD_S) + size / self._rate
            wait = self._free - self._now()
        if wait > 0:
            self._sleep(wait)
