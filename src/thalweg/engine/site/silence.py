"""Who has fallen silent: IDLE, judged by the wall clock, partition by partition."""

from __future__ import annotations

import time


class Silence:
    """Since when each partition of a stream has said nothing; `idle_ms` None: nobody is idle."""

    def __init__(self, idle_ms: int | None) -> None:
        self._idle_ms = idle_ms
        self._of_all = time.monotonic()  # no partition has been silent for longer
        self._of: dict[int, float] = {}

    def broken(self, partition: int | None = None) -> None:
        """By a partition, or by all of them."""
        now = time.monotonic()
        if partition is None:
            self._of_all = now
        else:
            self._of[partition] = now

    def is_long(self, partition: int | None = None) -> bool:
        """Whether a partition is idle, or all that were ever heard."""
        if self._idle_ms is None:
            return False
        if partition is None:
            last = max(self._of.values(), default=self._of_all)
        else:
            last = self._of.get(partition, self._of_all)
        return (time.monotonic() - max(last, self._of_all)) * 1000 > self._idle_ms
