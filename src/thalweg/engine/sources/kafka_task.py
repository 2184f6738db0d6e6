"""What a task does with the records of a topic: parse, type, judge and write them where it is.

Runs in Spark's Python workers, and knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.engine.shared.ingest.task_landing import Place, TaskLanding, Written
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.files.lines import Block
from thalweg.plan.catalog import StreamDef

REPORT = pa.schema([("report", pa.binary())])
_NOTHING = b"null"  # in place of a value that is missing or blank: a line that is no object
_LINE_END, _EMPTY = pa.scalar(b"\n", pa.large_binary()), pa.scalar(b"", pa.large_binary())


@dataclass(frozen=True)
class Records:
    """A topic's records as rows of a stream."""

    stream: StreamDef
    topic: str
    key: str | None = None  # the column that takes a record's key

    def frame(self, lines: JsonLines, partition: int, records: pa.Table) -> pl.DataFrame:
        """A row for each record, in order; what is no row is refused in place."""
        numbers = records["offset"].to_pylist()
        name = f"topic {self.topic}, partition {partition}"
        text = _lines(records["value"])
        rows = lines.frame(Block(name, 0, text, numbers=numbers, unit="offset"))
        if self.key is None:
            return rows
        keys = [None if k is None else k.decode(errors="replace") for k in _values(records["key"])]
        return rows.with_columns(pl.Series(self.key, keys, dtype=pl.String))


def _values(column: pa.ChunkedArray) -> list[bytes | None]:
    found: list[bytes | None] = column.to_pylist()
    return found


def _lines(values: pa.ChunkedArray) -> bytes:
    """A line for each record: line ends between JSON's tokens mean nothing."""
    if not values.null_count:
        joined = pc.binary_join_element_wise(values.cast(pa.large_binary()), _LINE_END, _EMPTY)
        whole = b"".join(_bytes_of(chunk) for chunk in joined.chunks)
        if whole.startswith(b"{") and whole.count(b"}\n{") + 1 == whole.count(b"\n") == len(values):
            return whole
    lines = ((v or b"").replace(b"\r", b" ").replace(b"\n", b" ") for v in _values(values))
    return b"".join((line if line.strip() else _NOTHING) + b"\n" for line in lines)


def _bytes_of(texts: pa.Array) -> bytes:
    """All texts one after the other."""
    _, offsets, values = texts.buffers()
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(values)[ends[texts.offset] : ends[texts.offset + len(texts)]])


@dataclass(frozen=True)
class LandRecords:
    """The task: batches with `value`, `offset`, `key` and `partition` in, reports out."""

    records: Records
    folder: Folder
    places: Mapping[int, Place]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines = JsonLines(self.records.stream)
        # Each range is read by one task, in the order of its offsets.
        for partition, of in groupby(_by_partition(batches), key=lambda one: one[0]):
            landing = TaskLanding(
                self.records.stream, self.folder, partition, self.places[partition]
            )
            for _, table in of:
                landing.take(self.records.frame(lines, partition, table))
            report = msgspec.msgpack.encode(landing.close())
            yield pa.RecordBatch.from_pylist([{"report": report}], REPORT)


def _by_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    for batch in batches:
        for partition in batch["partition"].unique().to_pylist():
            rows = batch.filter(pc.equal(batch["partition"], partition))
            if rows.num_rows:
                yield partition, pa.Table.from_batches([rows])


def read_report(packed: bytes) -> Written:
    return msgspec.msgpack.decode(packed, type=Written)
