"""Who wants to hear that something has changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

log = logging.getLogger(__name__)


class Listeners:
    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener from now on; gives how to stop it."""
        self._listeners.append(listener)

        def stop() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return stop

    def tell(self) -> None:
        for listener in list(self._listeners):
            try:
                listener()
            except Exception as error:  # one that fails must not keep others from hearing
                log.warning("a listener failed: %s", error)
