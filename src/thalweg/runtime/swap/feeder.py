"""This node's part in joins across nodes: the streams that are at home here go into the protocol.

One thread for all of them: it looks when a tick is done, and reads no more than eddies have room
for. What waits, waits on disk.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator

from thalweg.adapt.swap.messages import Feed, NotRunning
from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.publications import Publications
from thalweg.overlay.stack import Stack
from thalweg.plan.catalog import PLACE
from thalweg.plan.shapes import shape_of
from thalweg.plan.windows import FOREVER
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.swap.legs import Leg, feeds, legs_here, swap_of
from thalweg.runtime.swap.shares import Shares, Way

log = logging.getLogger(__name__)

ANSWER_S = 30.0  # of the node itself
_LOOK_EVERY_S, _IDLE_S = 0.1, 5.0
_ACKNOWLEDGE_EVERY_S = 0.2
_READ = "swap/read"  # a note of publications, as of the last look


class Feeder:
    """`room` is for so many rows that have no next site yet."""

    def __init__(self, driver: Driver, site: Site, publications: Publications, room: int) -> None:
        self._driver, self._site, self._publications = driver, site, publications
        self._room = room
        self._troubles: dict[tuple[str, int], str] = {}  # why a leg does not go on
        self._open: dict[tuple[str, int], tuple[int, Iterator[Feed]]] = {}  # what is being read
        self._acknowledged = 0.0
        note = site.engine.store.note(_READ)
        self._read: set[str] = set() if note is None else set(json.loads(note))
        self._news, self._stop = threading.Event(), threading.Event()
        self.shares = Shares()
        self._thread = threading.Thread(target=self._run, name="joins across nodes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._news.set()
        self._thread.join(10)

    def wake(self) -> None:
        self._news.set()

    def troubles(self, query: str) -> dict[int, str]:
        """Why streams that are at home here do not go on, by stream."""
        return {stream: why for (id_, stream), why in self._troubles.items() if id_ == query}

    def _run(self) -> None:
        while not self._stop.is_set():
            self._news.clear()
            seen = self._site.changes.count  # before looking, so that nothing slips in behind
            try:
                legs = self._legs()
                self._close_ended({leg.publication for leg in legs or ()})
                if legs is None:  # nothing is joined here
                    self._news.wait(_IDLE_S)
                elif not self._look(legs):
                    self._site.changes.wait(seen, _LOOK_EVERY_S)
            except DriverClosed:
                return
            except FAILURES as error:
                log.warning("streams of joins across nodes are not fed: %s", error)
                self._stop.wait(1.0)

    def _legs(self) -> list[Leg] | None:
        own = self._driver.address

        def find(stack: Stack) -> tuple[list[Leg], dict[Way, int]] | None:
            queries = swap_of(stack).queries
            if not queries:
                return None
            routed = {
                (id_, *way): rows
                for id_, state in queries.items()
                for way, rows in state.routed.items()
            }
            return legs_here(stack, own), routed

        found = self._driver.read(find)
        if found is None:
            return None
        self.shares.note(time.monotonic(), found[1])
        return found[0]

    def _close_ended(self, read: set[str]) -> None:
        """What was kept for joins that have ended: who asked for it may not get through now. It is
        written down what is read, since a join may end before the first look after a restart."""
        if read == self._read:
            return
        for publication in sorted(self._read - read):
            self._publications.close(publication)
        self._site.engine.store.write_note(_READ, json.dumps(sorted(read)).encode())
        self._read = read

    def _look(self, legs: list[Leg]) -> bool:
        """Whether there was something to do."""
        acknowledges = time.monotonic() - self._acknowledged >= _ACKNOWLEDGE_EVERY_S
        did = False
        self._open = {k: v for k, v in self._open.items() if k in {leg.key for leg in legs}}
        for leg in legs:
            if self._stop.is_set():
                return True
            try:
                did = self._feed(leg) or did
                if acknowledges:
                    self._site.engine.readers.acknowledge(leg.publication, leg.upto)
                if leg.upto < leg.awaited < FOREVER:
                    self._publications.promise_all(leg.publication, leg.awaited)
                self._troubles.pop(leg.key, None)
            except SiteError as error:
                self._open.pop(leg.key, None)
                self._troubles[leg.key] = str(error)
        if acknowledges:
            self._acknowledged = time.monotonic()
        return did

    def _feed(self, leg: Leg) -> bool:
        """Rows that the eddy has room for. Raises SiteError."""
        if leg.upto >= FOREVER or leg.waiting >= self._room:
            return False
        room = self._room - leg.waiting
        for request in self._requests(leg):
            answers = self._driver.call("swap", request).result(ANSWER_S)
            if any(isinstance(a, NotRunning) for a in answers):
                return False
            self._open[leg.key] = (request.upto, self._open[leg.key][1])
            room -= len(request.tuples)
            if room <= 0 or self._stop.is_set():
                return True
        del self._open[leg.key]
        return room < self._room - leg.waiting

    def _requests(self, leg: Leg) -> Iterator[Feed]:
        """What is to be fed next. What was begun to be read goes on, if nothing has come between:
        else a long past would be read again for each of its parts."""
        reached, found = self._open.get(leg.key, (leg.upto, None))
        if found is None or reached != leg.upto:
            places = [f.name for f in PLACE]
            schema = shape_of(self._publications.query(leg.publication)).schema
            types = tuple(f.type for f in schema if f.name not in places)
            found = feeds(leg, self._publications.read(leg.publication, leg.upto), types)
        self._open[leg.key] = (leg.upto, found)
        return found
