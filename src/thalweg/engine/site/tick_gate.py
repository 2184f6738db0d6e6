"""Ticks and changes take turns.

Where there is much to do, ticks follow upon each other without a pause, and a lock alone could keep
a change waiting for ever: the gate lets it in before the next tick.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from thalweg.engine.shared.engine import SharedEngine


class TickGate:
    def __init__(self, engine: SharedEngine) -> None:
        self._engine = engine
        self._gate = threading.RLock()

    @contextmanager
    def between_ticks(self) -> Iterator[None]:
        """Inside, no tick runs."""
        with self._gate, self._engine.exclusive():
            yield

    def before_tick(self) -> None:
        """Waits while somebody waits to change something."""
        with self._gate:
            pass
