"""A node is rid of what it computes for others: in the background, since it takes its time.

Readers go over when their streams have come to an instant, and streams may be quiet for long; so
whoever asks for a drain is answered at once, and asks again how far it is. It is not written down:
after a restart it is asked for again, and goes on with what is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import SiteError
from thalweg.engine.site.publications import reader_of
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.moves.leaving import Leaving

_LEAVE_WITHIN_S, _LOOK_EVERY_S = 60.0, 0.1
NONE, MOVING, WAITING, DONE, FAILED = "none", "moving", "waiting", "done", "failed"


class Progress(msgspec.Struct, frozen=True):
    """`waiting`: all have been told where to go, and some readers have not gone over yet."""

    state: str = NONE
    total: int = 0
    left: tuple[str, ...] = ()  # publications that are still read here
    error: str | None = None

    @property
    def is_over(self) -> bool:
        return self.state not in (MOVING, WAITING)


class Draining:
    def __init__(self, leaving: Leaving, take_no_more: Callable[[], None]) -> None:
        """`take_no_more` is called before: others are to give this node nothing new."""
        self._leaving, self._take_no_more = leaving, take_no_more
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._progress = Progress()
        self._found: Mapping[str, Fragment] = {}

    def progress(self) -> Progress:
        """Of the last drain."""
        found = self._progress
        if found.state == NONE:
            return found
        left = self._leaving.left(self._found) if found.state != DONE else ()
        return msgspec.structs.replace(found, left=left)

    def begin(self, why: str = "it is drained", asked_by: str = "") -> Progress:
        """Unless one is under way already. Raises WrongUse with what can't go."""
        with self._lock:
            if self._progress.is_over:
                found = self._leaving.of_others()
                self._take_no_more()
                self._found = found
                self._progress = Progress(MOVING if found else DONE, len(found))
                if found:
                    work = threading.Thread(
                        target=self._run, args=(found, why, asked_by), name="drain", daemon=True
                    )
                    work.start()
        return self.progress()

    def _run(self, found: Mapping[str, Fragment], why: str, asked_by: str) -> None:
        total = len(found)
        try:
            self._leaving.move_fragments(found, why, asked_by)
            self._progress = Progress(WAITING, total)
            while self._leaving.left(found):
                if self._stop.wait(_LOOK_EVERY_S):
                    return
            self._progress = Progress(DONE, total)
        except FAILURES as error:
            self._progress = Progress(FAILED, total, error=str(error))

    def finish(self, why: str) -> None:
        """Before the node leaves. Raises WrongUse, SiteError if it is not over in time."""
        until = time.monotonic() + _LEAVE_WITHIN_S
        now = self.begin(why)
        while not now.is_over:
            if time.monotonic() > until:
                first = f"{now.left[0]} is still read by {reader_of(now.left[0])}: "
                raise SiteError(f"{first if now.left else ''}it is not rid of all yet: try again")
            time.sleep(_LOOK_EVERY_S)
            now = self.progress()
        if now.error is not None:
            raise SiteError(now.error)

    def close(self) -> None:
        self._stop.set()
