"""What feeds a join's mirror: the changes that nodes have found, as they become final."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.plain_values import frame_of_changes
from thalweg.runtime.data.routes import Place, decode_place, encode_place
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.swap.definitions import query_of

if TYPE_CHECKING:
    from thalweg.runtime.swap.joins import Joins

_LOOK_EVERY_S = 0.5


class JoinedSource:
    """Has the nodes join, for as long as the mirror stands."""

    def __init__(self, mirror: StreamDef, joins: Joins) -> None:
        self._mirror, self._joins, self._query = mirror, joins, query_of(mirror)
        self._news = threading.Event()

    def run(self, feed: Feed) -> None:
        try:
            self._joins.submit(self._query, self._news.set)
            self._run(feed)
        except DriverClosed:
            return  # the node goes
        finally:
            self._joins.unheard(self._query.id)

    def _run(self, feed: Feed) -> None:
        """Changes are kept by the protocol until they have landed here."""
        id_, seen, told = self._query.id, "", ""
        packed = feed.resume_point()
        done = promised = self._query.first if packed is None else decode_place(packed).instant
        while not feed.stopped:
            self._news.clear()
            finals, said = self._joins.said(id_, done)
            if finals:
                changes = [c for final in finals for c in final.changes]
                done = promised = finals[-1].upto
                ahead = done if done < FOREVER else None
                resume = encode_place(Place(id_, done))
                frame = frame_of_changes(self._mirror, changes)
                feed.push(frame, resume=resume, promise=ahead)
                self._joins.took(id_, done)
            if said >= FOREVER:
                feed.finish()
                return
            if said > max(promised, BEGINNING):
                feed.heartbeat(said)
                promised = said
            waits = self._joins.waits(self._query)
            if waits and waits == seen and waits != told:  # not at the first look
                feed.warn(waits)
                told = waits
            seen = waits
            self._joins.demand(self._mirror, id_)
            self._news.wait(_LOOK_EVERY_S)
