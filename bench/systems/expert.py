"""Spark by hand, as a good engineer writes it for many alike queries: one Structured Streaming job
with the queries' constants in broadcast tables.

Events that a query may want are found by hash joins only: a seller's by its number, a price's by
its bin. A range of prices reaches over a few bins, each as wide as the ranges are, so that an event
meets about twice the queries that want it, not all of them. The stream-stream join runs once, with
the longest window; each query's own window is a condition behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bench.measure import CpuWatch, PeakMemory, Stopwatch
from bench.standing import Standing
from bench.systems.outcome import Outcome, Unable, as_said

COLUMNS = {
    "O": "ts BIGINT, itemID BIGINT, sellerID BIGINT, price DOUBLE",
    "C": "ts BIGINT, itemID BIGINT, buyerID BIGINT",
}
_RANGE = re.compile(r"O\.price >= (\S+) AND O\.price < (\S+)")
_SELLER = re.compile(r"O\.sellerID = (\d+)")
_SHIFT_MS = 62_135_596_800_000  # what is not above Spark's first watermark, the epoch, is late


class Constants:
    """The queries as rows: number, constants, and for joins the window."""

    def __init__(self, queries: Sequence[Standing]) -> None:
        self.sellers: list[tuple[int, int]] = []
        self.ranges: list[tuple[int, float, float]] = []
        self.joins: list[tuple[int, float, float, int]] = []
        for number, query in enumerate(queries):
            text = " AND ".join(query.conditions)
            if (seller := _SELLER.fullmatch(text)) and query.window_s is None:
                self.sellers.append((number, int(seller[1])))
            elif (prices := _RANGE.fullmatch(text)) is None:
                raise Unable("written by hand for queries of a few shapes only")
            elif query.window_s is None:
                self.ranges.append((number, float(prices[1]), float(prices[2])))
            else:
                window_ms = query.window_s * 1_000
                self.joins.append((number, float(prices[1]), float(prices[2]), window_ms))

    @property
    def bin(self) -> float:
        """The width of a bin of prices."""
        return median([high - low for _, low, high, *_ in (*self.ranges, *self.joins)] or [1.0])


def run(
    queries: Sequence[Standing], data: Path, spark: SparkSession, folder: Path, limit_s: float
) -> Outcome:
    watch = Stopwatch()
    constants = Constants(queries)
    session = spark.newSession()
    shuffled = spark.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", str(shuffled))
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    rows = _rows(session, constants, data)
    start_s = watch.seconds
    with PeakMemory() as memory:
        cpu, watch = CpuWatch(), Stopwatch()
        writer = rows.writeStream.format("parquet").outputMode("append")
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        job = writer.trigger(availableNow=True).start(str(folder / "rows"))
        try:
            if not job.awaitTermination(limit_s):
                raise Unable(f"stopped after {watch.seconds:.0f} s")
        finally:
            job.stop()
        outcome = {"seconds": watch.seconds, "cpu_s": cpu.seconds}
    batches = tuple(p["durationMs"]["triggerExecution"] / 1000 for p in job.recentProgress)
    said = said_by_number(queries, folder / "rows", "*.parquet")
    return Outcome(start_s, **outcome, said=said, ticks=batches, peak_bytes=memory.peak_bytes)


def _rows(session: SparkSession, constants: Constants, data: Path) -> DataFrame:
    """All queries' rows: `query`, `itemID`, `price`, `buyerID`."""
    width = constants.bin
    parts: list[DataFrame] = []
    nobody = F.lit(None).cast("long").alias("buyerID")
    if constants.sellers:
        table = _table(session, constants.sellers, "query int, sellerID long")
        met = _events(session, data, "O").join(F.broadcast(table), "sellerID")
        parts.append(met.select("query", "itemID", "price", nobody))
    if constants.ranges:
        table = _binned(session, constants.ranges, "query int, low double, high double", width)
        met = _priced(_events(session, data, "O"), width).join(F.broadcast(table), "bin")
        met = met.where("price >= low AND price < high")
        parts.append(met.select("query", "itemID", "price", nobody))
    if constants.joins:
        form = "query int, low double, high double, window long"
        table = _binned(session, constants.joins, form, width)
        longest = max(window for *_, window in constants.joins)
        met = _priced(_closings(session, data, longest), width).join(F.broadcast(table), "bin")
        met = met.where("price >= low AND price < high AND closed - opened <= window")
        parts.append(met.select("query", "itemID", "price", "buyerID"))
    found = parts[0]
    for part in parts[1:]:
        found = found.unionByName(part)
    return found


def _closings(session: SparkSession, data: Path, longest_ms: int) -> DataFrame:
    """Items as they close, with what they were opened with: `opened` and `closed` are instants."""
    o = _timed(_events(session, data, "O").withColumnRenamed("ts", "opened"), "opened").alias("o")
    c = _timed(_events(session, data, "C").withColumnRenamed("ts", "closed"), "closed").alias("c")
    condition = (
        "o.itemID = c.itemID AND o.at <= c.at "
        f"AND o.at >= c.at - INTERVAL {longest_ms} MILLISECONDS"
    )
    columns = ("o.itemID", "o.price", "c.buyerID", "o.opened", "c.closed")
    return o.join(c, F.expr(condition)).select(*columns)


def _events(session: SparkSession, data: Path, stream: str) -> DataFrame:
    reader = session.readStream.schema(COLUMNS[stream]).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(data / stream))


def _timed(frame: DataFrame, stamp: str) -> DataFrame:
    event = F.timestamp_millis(F.col(stamp) + F.lit(_SHIFT_MS))
    return frame.withColumn("at", event).withWatermark("at", "1 millisecond")


def _priced(frame: DataFrame, width: float) -> DataFrame:
    return frame.withColumn("bin", F.floor(F.col("price") / F.lit(width)))


def _table(session: SparkSession, rows: list[Any], schema: str) -> DataFrame:
    return session.createDataFrame(rows, schema)


def _binned(session: SparkSession, rows: list[Any], schema: str, width: float) -> DataFrame:
    """A row for each bin that a range reaches over."""
    first, last = (F.floor(F.col(c) / F.lit(width)) for c in ("low", "high"))
    return _table(session, rows, schema).withColumn("bin", F.explode(F.sequence(first, last)))


def said_by_number(queries: Sequence[Standing], folder: Path, files: str) -> pl.DataFrame:
    """What files with a column of the queries' numbers tell."""
    found = [f for f in sorted(folder.glob(files)) if f.stat().st_size]
    if not found:
        return as_said([])
    rows = pl.scan_parquet(found) if files.endswith("parquet") else pl.scan_csv(found)
    sums = (
        rows.group_by(pl.col("query").cast(pl.Int64))
        .agg(pl.len().alias("rows"), pl.col("itemID").sum().alias("items"))
        .collect()
    )
    numbers = {"query": range(len(queries)), "name": [q.name for q in queries]}
    named = sums.join(pl.DataFrame(numbers, schema_overrides={"query": pl.Int64}), on="query")
    return as_said([named.select(pl.col("name").alias("query"), "rows", "items")])
