"""A landing that only remembers: for engines that want a stream as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.frames import POS, TS, W, names
from thalweg.engine.shared.ingest.arriving import Positions, Receipt
from thalweg.engine.shared.ingest.normalise import normalise
from thalweg.engine.shared.ingest.task_landing import PARTITION_BITS
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed, Source
from thalweg.plan.catalog import StreamDef


class Recording:
    """Takes batches as the engine's own landing does, and judges nobody late."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batches: list[tuple[int, pl.DataFrame]] = []  # partition; `_ts`, `_pos`, `c0`, …
        self.reasons: list[str] = []  # of rows that were rejected
        self._counts: defaultdict[int, int] = defaultdict(int)

    @property
    def landing(self) -> Recording:
        return self

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
    ) -> Receipt:
        typed = normalise(stream, batch)
        place = (partition << PARTITION_BITS) + self._counts[partition] + pl.col("_row")
        self.batches.append((partition, typed.rows.with_columns(place.alias(POS)).drop("_row")))
        self._counts[partition] += batch.height
        self.reasons += typed.rejected["_reason"].to_list()
        return Receipt(typed.rows.height, 0, typed.rejected.height)

    def adopt(
        self, stream: StreamDef, batch: pl.DataFrame, positions: Positions, resume: bytes
    ) -> Receipt:
        raise NotImplementedError("a recording has the whole past")

    def resume_point(self, stream: StreamDef, partition: int = 0) -> bytes | None:
        return None

    def backlog(self) -> int:
        return 0

    def heartbeat(self, stream: StreamDef, instant: int, *, partition: int = 0) -> None:
        pass

    def finish(self, stream: StreamDef) -> None:
        pass

    def declare(self, stream: StreamDef, partitions: list[int]) -> None:
        pass

    def arrivals(self, stream: StreamDef) -> Iterator[Arrival]:
        columns = [TS, POS, W] if stream.is_relation else [TS, POS]
        data = names(len(stream.fields))
        for partition, rows in self.batches:
            for stamp, position, *rest in rows.select(*columns, *data).iter_rows():
                op = "-" if stream.is_relation and rest.pop(0) < 0 else "+"
                yield Arrival(partition, stamp, position, tuple(rest), op)


def record(source: Source, stream: StreamDef, folder: Path) -> Recording:
    """All of a finite source; the folder is for what the source needs meanwhile."""
    recording = Recording(folder)
    try:
        source.run(Feed(recording, stream))
    except SourceError as error:
        error.stream = stream.name
        raise
    return recording
