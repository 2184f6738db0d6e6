"""What a source is given: a way to deliver tuples of one stream, at the engine's pace."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import polars as pl

from thalweg.engine.shared.ingest.arriving import Positions, Receipt
from thalweg.engine.shared.ingest.landing import Landing as EngineLanding
from thalweg.engine.shared.ingest.task_landing import Keys, Place, Written
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import source_folder
from thalweg.engine.shared.state.watched import Watched
from thalweg.plan.catalog import StreamDef

log = logging.getLogger(__name__)

LARGEST_BACKLOG = 2_000_000  # tuples that may wait for a tick before sources are slowed
_POLL_S = 0.02


class Source(Protocol):
    """Feeds one stream until it ends or is stopped. Runs on a thread of its own."""

    def run(self, feed: Feed) -> None:
        """Deliver until `feed.stopped`; return at the end of a finite source after `finish`.

        Go on at `feed.resume_point`: what a push gave as `resume` is kept exactly if its batch is.
        """


class Landing(Protocol):
    """Where a feed delivers: the engine's own landing, or a recording of it."""

    def push(
        self,
        stream: StreamDef,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        positions: Positions | None = None,
        resume: bytes | None = None,
        promise: int | None = None,
    ) -> Receipt: ...

    def adopt(
        self, stream: StreamDef, batch: pl.DataFrame, positions: Positions, resume: bytes
    ) -> Receipt: ...

    def resume_point(self, stream: StreamDef, partition: int = 0) -> bytes | None: ...

    def backlog(self) -> int: ...

    def heartbeat(self, stream: StreamDef, instant: int, *, partition: int = 0) -> None: ...

    def finish(self, stream: StreamDef) -> None: ...

    def declare(self, stream: StreamDef, partitions: list[int]) -> None: ...


class HasLanding(Protocol):
    @property
    def landing(self) -> Landing: ...

    @property
    def folder(self) -> Path: ...


class Stopped(Exception):
    """The engine wants no more: raised inside a source that waits for room."""


class Full(Exception):
    """The engine is behind, and patience is at its end."""

    def __init__(self, backlog: int) -> None:
        super().__init__(f"{backlog} tuples wait for a tick")
        self.backlog = backlog


class Feed:
    """One stream's way into the engine. May be used by several threads."""

    def __init__(
        self,
        engine: HasLanding,
        stream: StreamDef,
        *,
        stop: threading.Event | None = None,
        largest_backlog: int = LARGEST_BACKLOG,
    ) -> None:
        self.engine, self.stream = engine, stream
        self._stop = stop or threading.Event()
        self._largest_backlog = largest_backlog

    @property
    def folder(self) -> Path:
        """The source's own, on this machine's disk; what another machine needs is in the book."""
        return self.engine.folder / source_folder(self.stream.name)

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but not past a stop; whether there was one."""
        return self._stop.wait(seconds)

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
        """Deliver tuples in order; durable when it returns, and slow while the engine is behind.
        With patience, Full is raised once that is at its end. `positions` are those that the
        tuples have got elsewhere; `promise` is a heartbeat behind them, durable with them."""
        self.wait_for_room(patience_s)
        receipt = self.engine.landing.push(
            self.stream,
            batch,
            partition=partition,
            batch_id=batch_id,
            positions=positions,
            resume=resume,
            promise=promise,
        )
        self.arrived(partition)
        return receipt

    def wait_for_room(self, patience_s: float | None = None) -> None:
        until = None if patience_s is None else time.monotonic() + patience_s
        while (backlog := self.engine.landing.backlog()) >= self._largest_backlog:
            if until is not None and time.monotonic() >= until:
                raise Full(backlog)
            if self.wait(_POLL_S):
                raise Stopped

    # --- what tasks land

    @property
    def lands_in_tasks(self) -> bool:
        """Whether tasks may type, judge and write tuples of this stream (`ingest.task_landing`)."""
        return isinstance(self.engine.landing, EngineLanding) and not self.stream.is_table

    def place(self, partition: int) -> Place:
        return self._engine_landing.place(self.stream, partition)

    def take(self, parts: Sequence[Written]) -> None:
        """List what tasks have written; Moved if they have to do it again."""
        self._engine_landing.take(self.stream, parts)
        for part in parts:
            self.arrived(part.partition)

    @property
    def landing_folder(self) -> Folder:
        """Where tasks write."""
        return self._engine_landing.folder

    @property
    def keys(self) -> Keys:
        """By which tasks divide what is much."""
        return self._engine_landing.keys(self.stream)

    @property
    def _engine_landing(self) -> EngineLanding:
        assert isinstance(self.engine.landing, EngineLanding), "a recording has no book"
        return self.engine.landing

    # ---

    def resume_point(self, partition: int = 0) -> bytes | None:
        return self.engine.landing.resume_point(self.stream, partition)

    @property
    def watched(self) -> Watched:
        """Which files a source of files that become more has taken."""
        return self._engine_landing.store.watched

    def declare(self, partitions: list[int]) -> None:
        """Partitions that exist; the watermark waits for each of them."""
        self.engine.landing.declare(self.stream, partitions)

    def heartbeat(self, instant: int, *, partition: int = 0) -> None:
        self.engine.landing.heartbeat(self.stream, instant, partition=partition)
        self.arrived(partition)

    def finish(self) -> None:
        """No more tuples, ever."""
        self.engine.landing.finish(self.stream)
        self.arrived(None)

    def warn(self, message: str) -> None:
        """Something that does not count, and that somebody should know of."""
        log.warning("source of %s: %s", self.stream.name, message)

    def recovered(self) -> None:
        """What was warned of is over, though nothing has landed since."""

    def arrived(self, partition: int | None) -> None:
        """Something has landed: of a partition, or of all of them."""
