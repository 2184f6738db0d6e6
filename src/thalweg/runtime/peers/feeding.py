"""What feeds a join's mirror: the changes that peers have found, as they become final."""

from __future__ import annotations

import queue
import threading

from thalweg.engine.sources.feed import Feed
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.result_messages import Combination, Final
from thalweg.overlay.p2p.tuples import Value
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import FOREVER
from thalweg.runtime.data.plain_values import frame_of_changes
from thalweg.runtime.peers.definitions import join_of
from thalweg.runtime.peers.peers import NotNow, Peers

_LOOK_EVERY_S = 1.0
_AT_ONCE = 5_000


class StreamSource:
    """A stream of peers is not fed here: its tuples go where their values live."""

    def run(self, feed: Feed) -> None:
        while not feed.wait(60.0):
            pass


class JoinSource:
    """Asks the peers for the join, for as long as its mirror stands."""

    def __init__(self, mirror: StreamDef, peers: Peers) -> None:
        self._mirror, self._peers = mirror, peers
        self._query: JoinQuery = join_of(mirror)
        self._news = threading.Event()
        self._rows: queue.SimpleQueue[Combination] = queue.SimpleQueue()

    def run(self, feed: Feed) -> None:
        query = self._query
        while True:
            try:
                self._peers.submit(query, self._heard)
                break
            except NotNow as error:
                feed.warn(str(error))
                if feed.wait(_LOOK_EVERY_S):
                    return
        try:
            if query.eager:
                self._run_eagerly(feed)
            else:
                self._run(feed)
        finally:
            self._peers.unheard(query.id)

    def _heard(self, value: Final | Combination) -> None:
        if isinstance(value, Combination):
            self._rows.put(value)
        self._news.set()

    def _run(self, feed: Feed) -> None:
        """Changes are kept by the protocol until they have landed here."""
        done = promised = int(feed.resume_point() or b"0")
        while not feed.stopped:
            self._news.clear()
            finals, said = self._peers.said(self._query.id, done)
            if finals:
                changes = [c for f in finals for c in f.changes]
                done = promised = finals[-1].upto
                ahead = done if done < FOREVER else None
                feed.push(
                    frame_of_changes(self._mirror, changes),
                    resume=str(done).encode(),
                    promise=ahead,
                )
                self._peers.took(self._query.id, done)
            if said >= FOREVER:
                feed.finish()
                return
            if said > promised:
                feed.heartbeat(said)
                promised = said
            self._news.wait(_LOOK_EVERY_S)

    def _run_eagerly(self, feed: Feed) -> None:
        """Rows as they come, at the instant of their newest tuple or, where others were faster,
        behind theirs: a stream's time does not go back."""
        floor = int(feed.resume_point() or b"0")
        while not feed.stopped:
            self._news.wait(_LOOK_EVERY_S)
            self._news.clear()
            rows: list[tuple[int, str, tuple[Value, ...]]] = []
            while len(rows) < _AT_ONCE and not self._rows.empty():
                found = self._rows.get()
                floor = max(floor, *(p.ts for p in found.parts))
                rows.append((floor, "+", found.row))
            if rows:
                floor += 1
                resume = str(floor).encode()
                feed.push(
                    frame_of_changes(self._mirror, rows).drop("op"), resume=resume, promise=floor
                )
                if not self._rows.empty():
                    self._news.set()
