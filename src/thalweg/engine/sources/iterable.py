"""A Python iterable as a source: dicts, tuples, or whole tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.rows import frame_of

ROWS_PER_BATCH = 10_000


class IterableSource:
    """Delivers an iterable's rows in order, and finishes with it.

    To go on after a restart it skips as many rows as have landed; so the iterable, or what the
    function returns, must begin again from the same first row.
    """

    def __init__(
        self,
        rows: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        rows_per_batch: int = ROWS_PER_BATCH,
    ) -> None:
        self._rows = rows
        self._rows_per_batch = rows_per_batch

    def run(self, feed: Feed) -> None:
        done = int(feed.resume_point() or b"0")
        skipped = 0
        for batch in self._batches(feed):
            skip = min(batch.height, done - skipped)
            skipped += skip
            fresh = batch.slice(skip)
            if fresh.height:
                done = skipped = done + fresh.height
                feed.push(fresh, resume=str(done).encode())
            if feed.stopped:
                return
        feed.finish()

    def _batches(self, feed: Feed) -> Iterator[pl.DataFrame]:
        for part in _parts(iter(self._opened()), self._rows_per_batch):
            frame = frame_of(feed.stream, part)
            yield from frame.iter_slices(self._rows_per_batch)

    def _opened(self) -> Iterable[Any]:
        return self._rows() if callable(self._rows) else self._rows


def _parts(items: Iterator[Any], size: int) -> Iterator[Any]:
    """Tables as they are, single rows in lists."""
    held: list[Any] = []
    for item in items:
        if _is_row(item):
            held.append(item)
        if held and (len(held) == size or not _is_row(item)):
            yield held
            held = []
        if not _is_row(item):
            yield item
    if held:
        yield held


def _is_row(item: Any) -> bool:
    is_table = isinstance(item, pl.DataFrame | pa.Table | pa.RecordBatch)
    return isinstance(item, Mapping) or not (is_table or hasattr(item, "__arrow_c_stream__"))
