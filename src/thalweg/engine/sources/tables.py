"""A table's file: read whole, again and again; what is different from before is a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import polars as pl

from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.sources.feed import Feed, Source
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef


@runtime_checkable
class TakesWhole(Protocol):
    """A feed that compares a table's rows with those that it had."""

    def replace(self, rows: pl.DataFrame) -> Receipt: ...


class TableSource:
    """`open_file` gives a source that reads the file once, from its beginning to its end."""

    def __init__(self, table: StreamDef, open_file: Callable[[], Source]) -> None:
        self._table, self._open_file = table, open_file

    def run(self, feed: Feed) -> None:
        if not isinstance(feed, TakesWhole):
            self._replay(feed)
            return
        while True:
            feed.replace(self._rows(feed))
            refresh_ms = self._table.refresh_ms
            if refresh_ms is None or feed.wait(refresh_ms / 1000):
                return

    def _replay(self, feed: Feed) -> None:
        """Once, from the beginning of time on."""
        stamp = pl.lit(self._table.beginning, dtype=pl.Int64).alias(self._table.timestamp)
        feed.push(self._rows(feed).with_columns(stamp, pl.lit("+").alias("op")))
        feed.finish()

    def _rows(self, feed: Feed) -> pl.DataFrame:
        collected = _Collected(feed)
        self._open_file().run(collected)
        if not collected.frames:
            return pl.DataFrame(schema={n: dtype(t) for n, t in columns_of(self._table).items()})
        return pl.concat(collected.frames, how="diagonal_relaxed")


class _Collected(Feed):
    """A feed that keeps what comes."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed.engine, feed.stream, stop=feed._stop)
        self.frames: list[pl.DataFrame] = []

    def push(self, batch: pl.DataFrame, **_: object) -> Receipt:
        self.frames.append(batch)
        return Receipt(batch.height, 0, 0)

    def resume_point(self, partition: int = 0) -> bytes | None:
        return None

    def declare(self, partitions: list[int]) -> None:
        pass

    def heartbeat(self, instant: int, *, partition: int = 0) -> None:
        pass

    def finish(self) -> None:
        pass
