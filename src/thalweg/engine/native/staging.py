"""Recorded input, made ready for replay: Parquet files of the tuples that count, in arrival order.

Spark drops late rows by its own rule, batch by batch. So that results are exact, late tuples are
taken out here by ours (a tuple below its partition's running maximum less LATENESS), and what
disorder is left is measured: with a watermark that far behind, Spark has nothing more to drop.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_type

from thalweg.engine.arrivals import Arrival
from thalweg.engine.native.types import spark_type
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import Kind
from thalweg.plan.windows import BEGINNING

TS = "ts"


class Recorded(Protocol):
    """A stream as typed frames in order of arrival, with columns `_ts`, `c0`, `c1`, …"""

    @property
    def batches(self) -> Sequence[tuple[int, pl.DataFrame]]:
        """(partition, tuples)"""


Source = Recorded | Sequence[Arrival]


@dataclass(slots=True)
class Staged:
    """A stream's accepted tuples: columns `ts` (instants) and `c0`, `c1`, …"""

    stream: StreamDef
    folder: Path
    rows: int = 0
    late: int = 0
    first: int | None = None  # smallest instant
    newest: int = BEGINNING
    disorder: int = 0  # how far behind the newest a tuple came, in instants
    newest_of: dict[int, int] = field(default_factory=dict)  # by partition
    files: int = 0


def arrow_schema(stream: StreamDef) -> pa.Schema:
    columns = [(f"c{i}", to_arrow_type(spark_type(f.type))) for i, f in enumerate(stream.fields)]
    return pa.schema([(TS, pa.int64()), *columns])


def stage(
    stream: StreamDef,
    source: Source,
    folder: Path,
    rows_per_file: int,
    horizon: int | None = None,
) -> Staged:
    """Write the tuples that count; those below the horizon count for the watermark only."""
    staged = Staged(stream, folder)
    folder.mkdir(parents=True)
    held = arrow_schema(stream).empty_table()
    for partition, table in _chunks(stream, source, rows_per_file):
        accepted = _accepted(staged, partition, table)
        if horizon is not None:
            accepted = accepted.filter(pc.field(TS) >= horizon)
        _measure(staged, accepted[TS].to_numpy())
        held = pa.concat_tables([held, accepted])
        while held.num_rows >= rows_per_file:
            _write(staged, held.slice(0, rows_per_file))
            held = held.slice(rows_per_file)
    if held.num_rows:
        _write(staged, held)
    return staged


def _chunks(
    stream: StreamDef, source: Source, rows_per_file: int
) -> Iterator[tuple[int, pa.Table]]:
    """(partition, tuples) in order of arrival."""
    if isinstance(source, Sequence):
        for partition, run in _runs(source, rows_per_file):
            yield partition, _table(stream, run)
        return
    schema = arrow_schema(stream)
    for partition, rows in source.batches:
        yield partition, rows.rename({"_ts": TS}).select(schema.names).to_arrow().cast(schema)


def _runs(arrivals: Iterable[Arrival], most: int) -> Iterator[tuple[int, list[Arrival]]]:
    """Arrivals cut where the partition changes, or there are enough for a file."""
    run: list[Arrival] = []
    for arrival in arrivals:
        if run and (run[0].partition != arrival.partition or len(run) == most):
            yield run[0].partition, run
            run = []
        run.append(arrival)
    if run:
        yield run[0].partition, run


def _table(stream: StreamDef, arrivals: Sequence[Arrival]) -> pa.Table:
    schema = arrow_schema(stream)
    columns = [pa.array([a.timestamp for a in arrivals], pa.int64())]
    for i, f in enumerate(stream.fields):
        values = pa.array([a.row[i] for a in arrivals], schema.field(i + 1).type)
        columns.append(finite(values) if f.type.kind is Kind.DOUBLE else values)
    return pa.Table.from_arrays(columns, schema=schema)


def finite(values: pa.Array) -> pa.Array:
    """A DOUBLE is finite, and -0.0 is 0.0."""
    return pc.if_else(pc.is_finite(values), pc.add(values, 0.0), pa.scalar(None, pa.float64()))


def _accepted(staged: Staged, partition: int, table: pa.Table) -> pa.Table:
    """Without the late tuples; the partition's running maximum goes on from chunk to chunk."""
    if table.num_rows == 0:
        return table
    instants = table[TS].to_numpy()
    seen = np.maximum.accumulate(instants)
    seen = np.maximum(seen, staged.newest_of.get(partition, BEGINNING))
    staged.newest_of[partition] = int(seen[-1])
    on_time = seen - instants <= staged.stream.lateness
    staged.late += int(np.count_nonzero(~on_time))
    return table if on_time.all() else table.filter(pa.array(on_time))


def _measure(staged: Staged, instants: np.ndarray) -> None:
    if len(instants) == 0:
        return
    smallest = int(instants.min())
    staged.first = smallest if staged.first is None else min(staged.first, smallest)
    seen = np.maximum(np.maximum.accumulate(instants), staged.newest)
    staged.newest = int(seen[-1])
    staged.disorder = max(staged.disorder, int((seen - instants).max()))
    staged.rows += len(instants)


def _write(staged: Staged, table: pa.Table) -> None:
    path = staged.folder / f"{staged.files:08d}.parquet"
    pq.write_table(table, path)
    # Spark takes files in order of their modification times, whose ties it breaks as it likes.
    os.utime(path, (1_000_000_000 + staged.files,) * 2)
    staged.files += 1
