"""Into the engine: one feed per stream, and a thread for each source."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.arriving import Positions, Receipt
from thalweg.engine.shared.ingest.table_door import TableDoor
from thalweg.engine.site.errors import Busy
from thalweg.engine.site.parking import last_line
from thalweg.engine.site.silence import Silence
from thalweg.engine.site.source_folders import folder_of
from thalweg.engine.sources.feed import LARGEST_BACKLOG, Feed, Full, Source, Stopped
from thalweg.engine.supervised import SupervisedThread
from thalweg.plan.catalog import StreamDef

log = logging.getLogger(__name__)

_SOURCE_RETRIES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # then every 30 s
RETRY_AFTER_S = 1.0


class SiteFeed(Feed):
    """A stream's way in; the ticker is told of whatever lands."""

    def __init__(
        self,
        engine: SharedEngine,
        stream: StreamDef,
        landed: Callable[[], None],
        largest_backlog: int = LARGEST_BACKLOG,
    ) -> None:
        self._halt = threading.Event()
        super().__init__(engine, stream, stop=self._halt, largest_backlog=largest_backlog)
        self.error: str | None = None
        self.thread: SupervisedThread | None = None
        self._failures = 0
        self._landed = landed
        self._silence = Silence(stream.idle_ms)
        self._waiting = 0
        self._folder = folder_of(engine.store, stream.name)

    @property
    def folder(self) -> Path:
        return self._folder

    def begin(self, open_source: Callable[[], Source]) -> None:
        """Run a source on a thread of its own."""
        self.thread = SupervisedThread(
            f"source-{self.stream.name}",
            lambda: self._run(open_source),
            stop=self._halt,
            failed=self._failed,
        )
        self.thread.start()

    def _run(self, open_source: Callable[[], Source]) -> None:
        with suppress(Stopped):
            open_source().run(self)
            self.error = None

    def _failed(self, error: BaseException) -> float:
        """The source is opened again after a while, where it was."""
        self.error = last_line(error)
        log.warning("source of %s failed: %s", self.stream.name, self.error)
        pause = _SOURCE_RETRIES_S[min(self._failures, len(_SOURCE_RETRIES_S) - 1)]
        self._failures += 1
        return pause

    def stop(self) -> None:
        self._halt.set()

    def wait_for_room(self, patience_s: float | None = None) -> None:
        self._waiting += 1
        try:
            super().wait_for_room(patience_s)
        except Full as full:
            raise Busy(full.backlog, RETRY_AFTER_S) from None
        finally:
            self._silence.broken()
            self._waiting -= 1

    def arrived(self, partition: int | None) -> None:
        self.error, self._failures = None, 0
        self._silence.broken(partition)
        self._landed()

    def warn(self, message: str) -> None:
        super().warn(message)
        self.error = message

    def recovered(self) -> None:
        self.error = None

    def is_idle(self, partition: int | None = None) -> bool:
        """Whether a partition, or the whole stream, has been silent for longer than IDLE. Whoever
        waits for room, or for a restart, is not silent."""
        return not self._waiting and self._silence.is_long(partition)


class TableFeed(SiteFeed):
    """A table's way in: pushes are inserted, or replace what has their key."""

    def __init__(
        self,
        engine: SharedEngine,
        stream: StreamDef,
        landed: Callable[[], None],
        largest_backlog: int = LARGEST_BACKLOG,
    ) -> None:
        super().__init__(engine, stream, landed, largest_backlog)
        self._door = TableDoor(engine, stream)

    def push(
        self,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        positions: Positions | None = None,
        resume: bytes | None = None,
        promise: int | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        self.wait_for_room(patience_s)
        return self._told(self._door.upsert(batch, batch_id))

    def replace(self, rows: pl.DataFrame) -> Receipt:
        """The table has these rows from now on, and no others."""
        return self._told(self._door.replace(rows))

    def _told(self, receipt: Receipt) -> Receipt:
        self.arrived(0)
        return receipt


class Feeds:
    """All streams' feeds."""

    def __init__(self, engine: SharedEngine, landed: Callable[[], None], backlog: int) -> None:
        self._engine, self._landed, self._backlog = engine, landed, backlog
        self._feeds: dict[str, SiteFeed] = {}

    def add(self, stream: StreamDef, open_source: Callable[[], Source] | None) -> SiteFeed:
        """Begin to feed a stream; without a source it waits for pushes."""
        made = TableFeed if stream.is_table else SiteFeed
        feed = made(self._engine, stream, self._landed, self._backlog)
        self._feeds[stream.name] = feed
        if open_source is not None:
            feed.begin(open_source)
        return feed

    def remove(self, name: str) -> None:
        self._join([self._feeds.pop(name)])

    def close(self) -> None:
        self._join(list(self._feeds.values()))
        self._feeds.clear()

    def find(self, name: str) -> SiteFeed | None:
        """None while the stream is being made or dropped."""
        return self._feeds.get(name)

    def arrived(self, name: str) -> None:
        """Something has landed that did not come through the feed."""
        feed = self._feeds.get(name)
        if feed is not None:
            feed.arrived(0)

    def __contains__(self, name: str) -> bool:
        return name in self._feeds

    def is_idle(self, stream: str, partition: int | None) -> bool:
        feed = self._feeds.get(stream)
        return feed is not None and feed.is_idle(partition)

    def _join(self, feeds: list[SiteFeed]) -> None:
        for feed in feeds:
            feed.stop()
        for feed in feeds:
            if feed.thread is not None:
                feed.thread.join(timeout=10)
