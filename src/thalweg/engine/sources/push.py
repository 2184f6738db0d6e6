"""Tuples that others bring: `FROM 'push:'`, or a stream without a source."""

from __future__ import annotations

import threading

from thalweg.engine.shared.ingest.landing import Receipt
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.rows import Rows, frame_of

SCHEME = "push:"


class PushSource:
    """Passes on what is pushed, from any thread; durable when `push` returns.

    A batch id makes a repeated push count once. `push` waits until the source runs, and while the
    engine is behind.
    """

    def __init__(self) -> None:
        self._feed: Feed | None = None
        self._running = threading.Event()
        self._finished = threading.Event()
        # Lateness is judged in order of arrival: one batch at a time.
        self._one_at_a_time = threading.Lock()

    def run(self, feed: Feed) -> None:
        self._feed = feed
        self._running.set()
        while not self._finished.is_set() and not feed.wait(0.1):
            pass

    def push(
        self, data: Rows, *, batch_id: str | None = None, partition: int = 0, timeout_s: float = 30
    ) -> Receipt:
        feed = self._open_feed(timeout_s)
        batch = frame_of(feed.stream, data)
        with self._one_at_a_time:
            return feed.push(batch, batch_id=batch_id, partition=partition)

    def heartbeat(self, instant: int, *, partition: int = 0, timeout_s: float = 30) -> None:
        """A promise that no tuple below the instant will come."""
        feed = self._open_feed(timeout_s)
        with self._one_at_a_time:
            feed.heartbeat(instant, partition=partition)

    def finish(self, *, timeout_s: float = 30) -> None:
        """No more tuples, ever."""
        feed = self._open_feed(timeout_s)
        with self._one_at_a_time:
            if not self._finished.is_set():
                feed.finish()
                self._finished.set()

    def _open_feed(self, timeout_s: float) -> Feed:
        if not self._running.wait(timeout_s) or self._feed is None:
            raise SourceError("nothing takes what is pushed here: is its stream registered?")
        if self._finished.is_set():
            raise SourceError(f"{self._feed.stream.name} has been finished: it takes no more")
        return self._feed
