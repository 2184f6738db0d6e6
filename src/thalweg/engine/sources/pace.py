"""Recorded streams side by side: the one that is furthest behind goes first.

Read each at its own speed, one stream could run hours of application time ahead of another, and the
engine would have to keep all that lies between. So streams take turns, batch by batch, by the
newest timestamp that each has delivered: a merge of the recordings.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.sources.feed import Feed, Stopped
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING

_POLL_S = 0.5


class Pace:
    """Whose turn it is."""

    def __init__(self, streams: Sequence[StreamDef], stop: threading.Event) -> None:
        self._reached = {s.name: BEGINNING for s in streams}
        self._changed = threading.Condition()
        self._stop = stop

    def wait_for_turn(self, stream: str) -> None:
        with self._changed:
            while self._next() != stream:
                if self._stop.is_set():
                    raise Stopped
                self._changed.wait(_POLL_S)

    def reach(self, stream: str, instant: int) -> None:
        with self._changed:
            self._reached[stream] = max(self._reached[stream], instant)
            self._changed.notify_all()

    def is_over(self) -> bool:
        with self._changed:
            return all(reached == FOREVER for reached in self._reached.values())

    def _next(self) -> str:
        return min(self._reached, key=lambda s: self._reached[s])  # the first of equals


class PacedFeed(Feed):
    """A recorded stream's way into the engine, in turn with the others."""

    def __init__(
        self,
        engine: SharedEngine,
        stream: StreamDef,
        pace: Pace,
        *,
        stop: threading.Event,
        largest_backlog: int,
        landed: threading.Event,
    ) -> None:
        super().__init__(engine, stream, stop=stop, largest_backlog=largest_backlog)
        self._store = engine.store
        self._pace = pace
        self._landed = landed
        pace.reach(stream.name, self._newest())  # where it was before a restart

    def wait_for_room(self, patience_s: float | None = None) -> None:
        self._pace.wait_for_turn(self.stream.name)
        super().wait_for_room(patience_s)

    def arrived(self, partition: int | None) -> None:
        self._pace.reach(self.stream.name, self._newest())
        self._landed.set()

    def _newest(self) -> int:
        """As far as the slowest of the stream's partitions has come."""
        name = self.stream.name
        known = self._store.inputs.partitions().items()
        return min((p.newest for (stream, _), p in known if stream == name), default=BEGINNING)
