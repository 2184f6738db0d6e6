"""What protocols deliver, handed to the application on a thread of its own.

So an application that takes its time holds up no protocol: a node that is busy with results still
answers pings. Order is kept.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

Callback = Callable[[object], None]


class Deliveries:
    def __init__(self, name: str) -> None:
        self.failures = 0
        self._callbacks: dict[str, tuple[Callback, ...]] = {}
        self._waiting: queue.SimpleQueue[tuple[str, object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"{name} deliveries", daemon=True)

    def on(self, protocol: str, callback: Callback) -> None:
        self._callbacks[protocol] = (*self._callbacks.get(protocol, ()), callback)

    def put(self, protocol: str, value: object) -> None:
        if protocol in self._callbacks:
            self._waiting.put((protocol, value))

    def __len__(self) -> int:
        return self._waiting.qsize()

    def start(self) -> None:
        self._thread.start()

    def close(self, within_s: float) -> None:
        """End after what waits was handed over, or when the time is up."""
        self._waiting.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(within_s)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            protocol, value = item
            for callback in self._callbacks[protocol]:
                try:
                    callback(value)
                except Exception:  # of the application; the next value may fare better
                    self.failures += 1
                    log.exception("what %s delivered was not taken: %r", protocol, value)
