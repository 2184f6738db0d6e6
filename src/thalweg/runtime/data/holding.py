"""Streams that are kept for all who read them along a tree.

A reader says, with what it acknowledges, from which instant on it or somebody below it may have to
ask for the stream again. The least of these is kept, here and at each node further up. So whoever
loses its publisher finds what it lacks at that one's publisher, and at last at the home.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from thalweg.engine.failures import FAILURES
from thalweg.engine.site.publications import is_publication

if TYPE_CHECKING:
    from thalweg.engine.site import Site

_WRITE_EVERY_S = 1.0  # keeping a little more than is asked for does no harm
ORPHANED_S = 300.0  # those who read from a node that is gone have so long to ask here


class Holding:
    """Of one site. Holders are publications."""

    def __init__(self, site: Site) -> None:
        self._site, self._lock = site, threading.Lock()
        self._asked: dict[str, dict[str, int]] = {}  # and not written yet
        self._written_s = time.monotonic()
        known = {q.name for q in site.catalog.queries()}
        for holder in site.engine.holds.holders():
            if is_publication(holder) and holder not in known:
                self.orphan(holder)

    def begin(self, publication: str, stream: str, since: int | None) -> None:
        """Before the publication begins: from an instant on, or from now on."""
        engine = self._site.engine
        with self._site.gate.between_ticks():
            instant = engine.watermark(stream) if since is None else since
            engine.holds.write(publication, {stream: instant})

    def acknowledge(self, publication: str, held_from: int) -> None:
        with self._lock:
            known = self._site.engine.holds.of(publication)
            if not known:
                return  # it is not held
            (stream,) = known
            self._asked[publication] = {stream: max(held_from, known[stream])}
            if time.monotonic() - self._written_s < _WRITE_EVERY_S:
                return
            asked, self._asked = self._asked, {}
            self._written_s = time.monotonic()
            self._site.engine.holds.write_all(asked)

    def end(self, publication: str) -> None:
        with self._lock:
            self._asked.pop(publication, None)
        if self._site.engine.holds.of(publication):
            with self._site.gate.between_ticks():
                self._site.engine.holds.write(publication, {})

    def orphan(self, publication: str) -> None:
        """Its reader is gone. Those who have read from that one may still come."""
        later = threading.Timer(ORPHANED_S, self._end_quietly, [publication])
        later.daemon = True
        later.start()

    def _end_quietly(self, publication: str) -> None:
        with suppress(*FAILURES):  # the site may be closed
            self.end(publication)
