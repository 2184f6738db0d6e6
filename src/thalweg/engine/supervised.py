"""Threads that do not die unseen."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class SupervisedThread:
    """Runs its work until that returns. Work that fails in whatever way is begun again, after
    the pause that `failed` asks for."""

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        *,
        stop: threading.Event,
        failed: Callable[[BaseException], float],
    ) -> None:
        self._work, self._stop, self._failed = work, stop, failed
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                self._work()
                return
            except BaseException as error:
                pause = self._failed(error)
            if self._stop.wait(pause):
                return
