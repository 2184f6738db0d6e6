"""Generated streams as a source: `generator:auctions/Bid`, paced by the clock if it runs live."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from thalweg.engine.generators import Generator, GeneratorError, open_generator
from thalweg.engine.sources.errors import SourceError, suggestion
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef

SCHEME = "generator:"
ROWS_PER_BATCH = 65_536
_PAUSE_S = 0.1  # between deliveries of a paced stream
_HEARTBEAT_S = 1.0


class Progress(msgspec.Struct, frozen=True):
    """Where a generated stream goes on, and when on the wall clock its application time began.

    With the same beginning after a restart, streams of one world stay together, and what would have
    happened meanwhile comes at once.
    """

    next: int = 0
    began: float | None = None


class GeneratorSource:
    """`speed` is application time by wall-clock time; None is as fast as the engine goes."""

    def __init__(
        self,
        generator: Generator,
        stream: str,
        *,
        speed: float | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.generator, self.name, self.speed = generator, stream, speed
        self._rows_per_batch = rows_per_batch
        self._clock = clock

    @property
    def is_bounded(self) -> bool:
        return self.generator.settings.limit is not None

    def run(self, feed: Feed) -> None:
        found = feed.resume_point()
        progress = msgspec.json.decode(found, type=Progress) if found else Progress()
        if self.speed is None:
            self._run_flat_out(feed, progress)
        else:
            self._run_paced(feed, progress, self.speed)

    def _run_flat_out(self, feed: Feed, progress: Progress) -> None:
        done = progress.next
        for batch in self.generator.batches(self.name, self._rows_per_batch, start=done):
            if feed.stopped:
                return
            done += batch.num_rows
            feed.push(_frame(batch), resume=_packed(Progress(done, progress.began)))
        feed.finish()

    # --- at the clock's pace

    def _run_paced(self, feed: Feed, progress: Progress, speed: float) -> None:
        began = self._clock() if progress.began is None else progress.began
        done, silent_since = progress.next, self._clock()
        if progress.began is None:  # written down before the first tuple, which may be far away
            feed.push(_frame(self._empty()), resume=_packed(Progress(done, began)))
        for batch, stamps in self._stamped(feed.stream, done):
            sent = 0
            while sent < batch.num_rows:
                now_ms = self.generator.settings.begin + (self._clock() - began) * 1000 * speed
                upto = int(np.searchsorted(stamps, now_ms, side="right"))
                if upto > sent:
                    done += upto - sent
                    part = _frame(batch.slice(sent, upto - sent))
                    feed.push(part, resume=_packed(Progress(done, began)))
                    sent, silent_since = upto, self._clock()
                elif self._clock() - silent_since >= _HEARTBEAT_S:
                    self._heartbeat(feed, now_ms)
                    silent_since = self._clock()
                if feed.stopped or (sent < batch.num_rows and feed.wait(_PAUSE_S)):
                    return
        feed.finish()

    def _stamped(
        self, stream: StreamDef, start: int
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Batches with their tuples' times of arrival, as milliseconds: they never fall."""
        seen = -(1 << 62)
        for batch in self.generator.batches(self.name, self._rows_per_batch, start=start):
            stamps = pl.Series(batch.column(self.generator.stream(self.name).timestamp))
            ms = stamps.dt.epoch("ms") if stamps.dtype.is_temporal() else stamps
            arrivals = np.maximum(np.maximum.accumulate(ms.to_numpy()), seen)
            seen = int(arrivals[-1])
            yield batch, arrivals

    def _heartbeat(self, feed: Feed, now_ms: float) -> None:
        """Nothing happens, but time goes on: what is still to come is not older than this."""
        settings = self.generator.settings
        sure_ms = int(now_ms) - (settings.max_delay if settings.out_of_order else 0)
        stream = feed.stream
        counted = stream.timestamp_type.is_integer
        feed.heartbeat(sure_ms if counted else sure_ms * 1000 // stream.resolution_us)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], self.generator.schema(self.name))


def open_generated(
    stream: StreamDef, uri: str, *, live: bool, rows_per_batch: int = ROWS_PER_BATCH
) -> GeneratorSource:
    """Raises SourceError where the generator or an option is unknown, or columns do not match."""
    options = Options(stream)
    speed = options.number("speed", 1.0)
    if not 0 <= speed < float("inf"):
        raise SourceError(f"{stream.name}: speed is a positive number, or 0 for no pace")
    try:
        generator, name = open_generator(uri, options.rest())
    except GeneratorError as error:
        raise SourceError(f"{stream.name}: {error}") from None
    _check_columns(stream, generator, name)
    pace = speed if live and speed else None
    return GeneratorSource(generator, name, speed=pace, rows_per_batch=rows_per_batch)


def _check_columns(stream: StreamDef, generator: Generator, name: str) -> None:
    there = [f.name for f in generator.stream(name).fields]
    known = {n.lower() for n in there}
    for column in columns_of(stream):
        if column.lower() not in known:
            raise SourceError(
                f"{stream.name}: {generator.name}/{name} has no column {column}"
                f"{suggestion(column, there)}"
            )


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _packed(progress: Progress) -> bytes:
    return msgspec.json.encode(progress)
