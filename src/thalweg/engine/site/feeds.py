"""Into the engine: one feed per stream, a thread for each source, and who has fallen silent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import polars as pl

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.landing import Receipt
from thalweg.engine.site.errors import Busy
from thalweg.engine.sources.feed import LARGEST_BACKLOG, Feed, Source, Stopped
from thalweg.plan.catalog import StreamDef

log = logging.getLogger(__name__)

_POLL_S = 0.02
_SOURCE_RETRIES_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # then every 30 s
RETRY_AFTER_S = 1.0


class SiteFeed(Feed):
    """A stream's way in. One batch at a time lands; the ticker is told of each."""

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
        self.finished = False
        self.thread: threading.Thread | None = None
        self._landed = landed
        self._one_at_a_time = threading.Lock()
        self._waiting = 0

    def begin(self, open_source: Callable[[], Source]) -> None:
        """Run a source on a thread of its own."""
        self.thread = threading.Thread(
            target=_run, args=(self, open_source), name=f"source-{self.stream.name}", daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        self._halt.set()

    def push(
        self,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        resume: bytes | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        """As `Feed.push`; with patience, Busy is raised once that is at its end."""
        self._wait_for_room(patience_s)
        with self._one_at_a_time:
            receipt = self.engine.landing.push(
                self.stream, batch, partition=partition, batch_id=batch_id, resume=resume
            )
        self.last_arrival = time.monotonic()
        self._landed()
        return receipt

    def heartbeat(self, instant: int, *, partition: int = 0) -> None:
        with self._one_at_a_time:
            super().heartbeat(instant, partition=partition)
        self._landed()

    def finish(self) -> None:
        with self._one_at_a_time:
            super().finish()
        self.finished = True
        self._landed()

    def is_idle(self) -> bool:
        """Silent for longer than IDLE. Whoever waits for room, or for a restart, is not silent."""
        idle_ms = self.stream.idle_ms
        if idle_ms is None or self.finished or self._waiting:
            return False
        return (time.monotonic() - self.last_arrival) * 1000 > idle_ms

    def _wait_for_room(self, patience_s: float | None) -> None:
        until = None if patience_s is None else time.monotonic() + patience_s
        self._waiting += 1
        try:
            while (backlog := self.engine.landing.backlog()) >= self._largest_backlog:
                if until is not None and time.monotonic() >= until:
                    raise Busy(backlog, RETRY_AFTER_S)
                if self.wait(_POLL_S):
                    raise Stopped
        finally:
            self.last_arrival = time.monotonic()
            self._waiting -= 1


class Feeds:
    """All streams' feeds."""

    def __init__(self, engine: SharedEngine, landed: Callable[[], None], backlog: int) -> None:
        self._engine, self._landed, self._backlog = engine, landed, backlog
        self._feeds: dict[str, SiteFeed] = {}

    def add(self, stream: StreamDef, open_source: Callable[[], Source] | None) -> SiteFeed:
        """Begin to feed a stream; without a source it waits for pushes."""
        feed = SiteFeed(self._engine, stream, self._landed, self._backlog)
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

    def __contains__(self, name: str) -> bool:
        return name in self._feeds

    def idle(self) -> frozenset[str]:
        return frozenset(name for name, feed in list(self._feeds.items()) if feed.is_idle())

    def _join(self, feeds: list[SiteFeed]) -> None:
        for feed in feeds:
            feed.stop()
        for feed in feeds:
            if feed.thread is not None:
                feed.thread.join(timeout=10)


def _run(feed: SiteFeed, open_source: Callable[[], Source]) -> None:
    """Run the source; one that fails is opened again, after a while, where it was."""
    for attempt in range(1 << 62):
        try:
            open_source().run(feed)
            feed.error = None
            return
        except Stopped:
            return
        except Exception as error:
            feed.error = f"{type(error).__name__}: {error}"
            log.warning("source of %s failed: %s", feed.stream.name, feed.error)
            pause = _SOURCE_RETRIES_S[min(attempt, len(_SOURCE_RETRIES_S) - 1)]
            if feed.wait(pause):
                return
