"""A query as one would write it by hand for Spark: the baseline of throughput benchmarks.

Source files are read as they are, event times come from the stream's own timestamps, the watermark
is LATENESS behind, and the join's rows go straight to a Parquet sink in append mode: columns `ts`
(the instant at which the row enters) and `o0`, `o1`, … There is no netting, so this is ISTREAM
where no two equal rows meet at one instant, as in a join on keys.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructField, StructType

from thalweg.engine.native.joins import EVENT, START, input_column, interval_rows
from thalweg.engine.native.limits import check
from thalweg.engine.native.spj import Input
from thalweg.engine.native.types import spark_type
from thalweg.engine.native.values import micros
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Node

STATE_STORES = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
STATE_STORE_SETTING = "spark.sql.streaming.stateStore.providerClass"


# Spark's first watermark is the epoch, and what is not above it is late: event times, which nobody
# sees, are counted from the year 1.
_SHIFT_MS = 62_135_596_800_000


@dataclass(frozen=True, slots=True)
class Measured:
    events: int
    seconds: float
    batch_seconds: tuple[float, ...]
    rows_out: int
    state_rows: int  # the most that there were after a batch
    state_memory_bytes: int
    checkpoint_bytes: int  # on disk, at the end

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


def start(
    spark: SparkSession,
    plan: Node,
    folders: Mapping[str, Path | str],
    out: Path | str,
    *,
    files_per_trigger: int = 1,
    state_store: str = "memory",
) -> StreamingQuery:
    """Start the query over folders of Parquet files, by stream; it ends when it has read them.

    Rows go to `out`/rows, checkpoints to `out`/checkpoint.
    """
    query = check(plan)
    session = spark.newSession()
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set(STATE_STORE_SETTING, STATE_STORES[state_store])
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    by_name = {name.lower(): folder for name, folder in folders.items()}
    frames = [
        _read(session, number, source, by_name[source.stream.name.lower()], files_per_trigger)
        for number, source in enumerate(query.inputs)
    ]
    rows = interval_rows(query, frames)
    outputs = [name for name in rows.columns if name.startswith("o")]
    result = rows.select(F.col(START).alias("ts"), *outputs)
    writer = result.writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", str(Path(out) / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(Path(out) / "rows"))


def measure(
    spark: SparkSession,
    plan: Node,
    folders: Mapping[str, Path | str],
    out: Path | str,
    *,
    files_per_trigger: int = 1,
    state_store: str = "memory",
) -> Measured:
    """Run the query to its end."""
    began = time.perf_counter()
    running = start(
        spark,
        plan,
        folders,
        out,
        files_per_trigger=files_per_trigger,
        state_store=state_store,
    )
    running.awaitTermination()
    seconds = time.perf_counter() - began
    progress = running.recentProgress
    operators = [p["stateOperators"] for p in progress]
    checkpoint = Path(out) / "checkpoint"
    return Measured(
        events=sum(p["numInputRows"] for p in progress),
        seconds=seconds,
        batch_seconds=tuple(p["durationMs"]["triggerExecution"] / 1000 for p in progress),
        rows_out=spark.read.parquet(str(Path(out) / "rows")).count(),
        state_rows=max((sum(o["numRowsTotal"] for o in ops) for ops in operators), default=0),
        state_memory_bytes=max(
            (sum(o["memoryUsedBytes"] for o in ops) for ops in operators), default=0
        ),
        checkpoint_bytes=sum(f.stat().st_size for f in checkpoint.rglob("*") if f.is_file()),
    )


def _read(
    session: SparkSession, number: int, source: Input, folder: Path | str, files_per_trigger: int
) -> DataFrame:
    stream = source.stream
    reader = session.readStream.schema(_file_schema(stream))
    frame = reader.option("maxFilesPerTrigger", files_per_trigger).parquet(str(folder))
    columns = [
        F.col(field.name).alias(input_column(number, i)) for i, field in enumerate(stream.fields)
    ]
    frame = frame.select(_instant(stream).alias(START), *columns)
    # Spark calls a row late that is at its watermark, not only below: so one instant more.
    delay = f"{stream.lateness + 1} milliseconds"
    event = F.timestamp_millis(F.col(START) + F.lit(_SHIFT_MS))
    return frame.withColumn(EVENT, event).withWatermark(EVENT, delay)


def _file_schema(stream: StreamDef) -> StructType:
    columns = [(f.name, f.type) for f in stream.fields]
    if stream.timestamp_index is None:
        columns.append((stream.timestamp, stream.timestamp_type))
    return StructType([StructField(name, spark_type(t)) for name, t in columns])


def _instant(stream: StreamDef) -> Column:
    stamp = F.col(stream.timestamp)
    if stream.timestamp_type.is_integer:
        return stamp.cast("long")
    counted = micros(stamp.cast("timestamp_ntz"))
    unit = F.lit(stream.resolution_us).cast("long")
    return F.call_function("div", counted - F.pmod(counted, unit), unit)
