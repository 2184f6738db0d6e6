"""What all generators share: named streams of one world, drawn in batches of any size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from thalweg.engine.generators.noise import Ints, between, uniform
from thalweg.engine.generators.settings import GeneratorError, Settings, suggest
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TIMESTAMP, VARCHAR, SqlType

# Tuples are drawn in blocks of this many rows; disorder stays within a block. Part of what a seed
# means: with another size the same seed gives another order of arrival.
BLOCK_ROWS = 65_536

ARROW_TYPES: dict[SqlType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INTEGER: pa.int32(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    VARCHAR: pa.string(),
    TIMESTAMP: pa.timestamp("us"),
}

Columns = Mapping[str, Any]  # name to numpy or Arrow array; the timestamp as milliseconds


class Generator(ABC):
    """A seeded world of streams.

    `fields` gives each stream's columns; the last one is the timestamp. All streams of one world
    agree with each other: a closing has its opening, a bid its item.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[Settings]] = Settings
    fields: ClassVar[Mapping[str, tuple[Field, ...]]]

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.settings_type()

    @property
    def streams(self) -> tuple[StreamDef, ...]:
        """The streams as a catalog would hold them, LATENESS included."""
        return tuple(self._definition(stream) for stream in self.fields)

    def stream(self, stream: str) -> StreamDef:
        for definition in self.streams:
            if definition.name.lower() == stream.lower():
                return definition
        raise GeneratorError(f"{self.name} has no stream {stream}{suggest(stream, self.fields)}")

    def schema(self, stream: str) -> pa.Schema:
        return pa.schema([(f.name, ARROW_TYPES[f.type]) for f in self.stream(stream).fields])

    def batches(
        self, stream: str, rows_per_batch: int = BLOCK_ROWS, start: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """The stream from its tuple number `start` on, in order of arrival."""
        if rows_per_batch < 1 or start < 0:
            raise GeneratorError("a batch has one row or more, and starts at row 0 or later")
        definition = self.stream(stream)
        blocks = self._limited(self._blocks(definition, start), start)
        return _rebatched(blocks, self.schema(stream), rows_per_batch)

    @abstractmethod
    def columns(self, stream: str, index: Ints) -> Columns:
        """The stream's tuples of these numbers, in order of their timestamps."""

    def parts(self, stream: str, start: int) -> Iterator[tuple[int, Columns]]:
        """(number of its first tuple, columns), from the part that holds tuple `start` or earlier.

        Where parts begin must not depend on `start`, because disorder stays within a part.
        """
        first = start - start % BLOCK_ROWS
        while True:
            yield first, self.columns(stream, np.arange(first, first + BLOCK_ROWS, dtype=np.int64))
            first += BLOCK_ROWS

    def _definition(self, stream: str) -> StreamDef:
        *columns, stamp = self.fields[stream]
        return StreamDef(
            name=stream,
            fields=(*columns, Field(stamp.name, self.settings.timestamps)),
            timestamp=stamp.name,
            timestamp_type=self.settings.timestamps,
            lateness=self.settings.max_delay if self.settings.out_of_order else 0,
            source=f"generator:{self.name}/{stream}",
        )

    def _blocks(self, stream: StreamDef, start: int) -> Iterator[pa.RecordBatch]:
        for first, columns in self.parts(stream.name, start):
            batch = self._record_batch(stream, first, columns)
            skipped = max(0, start - first)
            if skipped < batch.num_rows:
                yield batch.slice(skipped)

    def _record_batch(self, stream: StreamDef, first: int, columns: Columns) -> pa.RecordBatch:
        stamps = columns[stream.timestamp]
        if self.settings.timestamps == TIMESTAMP:
            columns = {**columns, stream.timestamp: stamps * 1000}
        arrays = [
            pa.array(columns[f.name], ARROW_TYPES[f.type])
            if not isinstance(columns[f.name], pa.Array)
            else columns[f.name]
            for f in stream.fields
        ]
        batch = pa.RecordBatch.from_arrays(arrays, [f.name for f in stream.fields])
        order = self._arrival_order(stream.name, first, stamps)
        return batch if order is None else batch.take(pa.array(order))

    def _arrival_order(self, stream: str, first: int, stamps: Ints) -> Ints | None:
        """By timestamp plus delay: so nothing arrives more than `max_delay` behind the newest."""
        settings = self.settings
        if not settings.out_of_order:
            return None
        index = np.arange(first, first + len(stamps), dtype=np.int64)
        delayed = uniform(settings.seed, stream + "/delayed", index) < settings.out_of_order
        delay = between(0, settings.max_delay, uniform(settings.seed, stream + "/delay", index))
        return np.argsort(stamps + np.where(delayed, delay, 0), kind="stable")

    def _limited(self, blocks: Iterator[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
        if self.settings.limit is None:
            yield from blocks
            return
        left = self.settings.limit - start
        while left > 0:
            block = next(blocks).slice(0, left)
            yield block
            left -= block.num_rows


def _rebatched(
    blocks: Iterator[pa.RecordBatch], schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows`, but for the last."""
    held: list[pa.RecordBatch] = []
    count = 0
    for block in blocks:
        while count + block.num_rows >= rows:
            taken = rows - count
            yield _joined([*held, block.slice(0, taken)], schema)
            held, count, block = [], 0, block.slice(taken)
        if block.num_rows:
            held.append(block)
            count += block.num_rows
    if held:
        yield _joined(held, schema)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.concat_batches(batches).cast(schema) if len(batches) > 1 else batches[0]
