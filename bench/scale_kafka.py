"""Kafka's JSON into a standing join and many filters, beside native Structured Streaming.

Native is what an engineer writes by hand: the join as one job, all filters as another with their
constants in a broadcast table, found by the bin of the price. Both read the same two topics to
their end, and write the same number of rows to Parquet files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812
from tests.engine.kafka_broker import Broker, missing
from tests.engine.topics import Topic

from bench.measure import CpuWatch, Stopwatch, process_cpu_s
from bench.scale_events import COLUMNS, WINDOW_S, Events, distinct_joins
from bench.warm import warmed
from thalweg.cql import compile_script
from thalweg.engine.session import spark_session
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.outputs import EVERY_QUERY
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.parquet_tables import ParquetTablesSink
from thalweg.engine.sources import open_source
from thalweg.engine.sources.feed import Feed

PARTITIONS = 2
A_TICK = 200_000
_WIDTH = 10.0  # of a filter's range of prices
_SHIFT_MS = 62_135_596_800_000


def kafka_rows(
    events: int, filters: int, seed: int, folder: Path, runs: int = 1
) -> list[dict[str, Any]]:
    """Each way so many times: in the first run the JVM compiles and workers load what they need.
    Nothing where there can be no broker."""
    if missing() is not None:
        return []
    broker = Broker(folder / "broker")
    try:
        broker.wait()
        with warmed(spark_session("local[2]")) as spark:
            topics = _filled(spark, broker, events, seed, folder)
            lows = np.random.default_rng(seed).uniform(0, 990, filters)
            ways: dict[str, Callable[[Path], int]] = {
                "kafka": lambda here: _ours(spark, topics, lows, here / "ours"),
                "kafka, native": lambda here: _native(spark, topics, lows, here / "native"),
            }
            rows = [
                _row(way, partial(do, folder / str(run)), broker, events, filters) | {"run": run}
                for way, do in ways.items()
                for run in range(1, runs + 1)
            ]
            same = len({row["rows out"] for row in rows}) == 1
            return [row | {"same rows": same} for row in rows]
    finally:
        broker.stop()


def _row(
    way: str, do: Callable[[], int], broker: Broker, events: int, filters: int
) -> dict[str, Any]:
    pid = broker._process.pid
    watch, cpu, before = Stopwatch(), CpuWatch(), process_cpu_s(pid)
    rows_out = do()
    seconds, of_broker = watch.seconds, process_cpu_s(pid) - before
    own = cpu.seconds - of_broker
    return {
        "what": "kafka",
        "source": way,
        "events": events,
        "queries": filters + 1,
        "rows out": rows_out,
        "seconds": seconds,
        "cpu s": own,
        "broker cpu s": of_broker,
        "us/event": own / events * 1e6,
        "events/s": events / seconds,
    }


def _filled(spark: Any, broker: Broker, events: int, seed: int, folder: Path) -> dict[str, Topic]:
    """A topic for each stream; each partition has its events in order of time."""
    made = Events(events // 4, 4, seed, folder / "events")
    topics = {}
    for name in COLUMNS:
        topics[name] = topic = Topic(spark, broker, f"scale-{name}", PARTITIONS)
        for partition in range(PARTITIONS):
            text = folder / f"{name}-{partition}.json"
            lines = (line for tick in made._ticks for line in _lines(tick[name], partition))
            text.write_text("\n".join(lines))
            sent = spark.read.text(str(text)).coalesce(1)
            sent = sent.select(F.col("value"), F.lit(partition).alias("partition"))
            writer = sent.write.format("kafka").option("topic", topic.address.topic)
            writer.option("kafka.bootstrap.servers", topic.address.servers).save()
    return topics


def _lines(rows: Any, partition: int) -> list[str]:
    found: list[str] = rows.gather_every(PARTITIONS, partition).write_ndjson().splitlines()
    return found


# --- ours


def _ours(spark: Any, topics: dict[str, Topic], lows: np.ndarray, folder: Path) -> int:
    streams = "".join(
        f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts BIGINT FROM '{topics[name].uri}';\n"
        for name, columns in COLUMNS.items()
    )
    filters = "".join(
        f"CREATE QUERY f{i} AS SELECT ISTREAM O.itemID, O.price FROM O [Now] "
        f"WHERE O.price >= {low:.3f} AND O.price < {low + _WIDTH:.3f};\n"
        for i, low in enumerate(lows)
    )
    compiled = compile_script(streams + distinct_joins(1) + filters)
    outlet, sink = SinkOutlet(), ParquetTablesSink(folder / "rows")
    engine = SharedEngine(folder / "data", OnSpark(spark.sparkContext), outlet=outlet)
    open_where_it_was(engine.store, EVERY_QUERY, "rows", sink)
    outlet.attach_all("rows", sink)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(compiled.queries)

    def feed(stream: Any) -> None:
        open_source(stream, spark, folder, live=False).run(Feed(engine, stream))

    threads = [threading.Thread(target=feed, args=(s,)) for s in compiled.catalog.streams()]
    for thread in threads:
        thread.start()
    rows_out = 0
    while True:
        is_over = not any(thread.is_alive() for thread in threads)
        enough = engine.landing.backlog() >= A_TICK
        tick = engine.tick(limit=A_TICK) if is_over or enough else None
        if tick is not None:
            rows_out += tick.rows_out
        elif is_over:
            break
        else:
            threads[0].join(0.02)
    engine.close()
    return rows_out


# --- native


def _native(spark: Any, topics: dict[str, Topic], lows: np.ndarray, folder: Path) -> int:
    constants = [(i, round(float(low), 3)) for i, low in enumerate(lows)]
    table = spark.createDataFrame(constants, "filter int, low double")
    table = table.withColumn("high", F.round(F.col("low") + _WIDTH, 3))
    first, last = (F.floor(F.col(c) / F.lit(_WIDTH)) for c in ("low", "high"))
    table = F.broadcast(table.withColumn("bin", F.explode(F.sequence(first, last))))
    opened, closed = (_events(spark, topics[name], name) for name in ("O", "C"))
    wanted = opened.withColumn("bin", F.floor(F.col("price") / F.lit(_WIDTH))).join(table, "bin")
    wanted = wanted.where("price >= low AND price < high")
    o = opened.withWatermark("at", "1 second").alias("o")
    c = closed.withWatermark("at", "1 second").alias("c")
    joined = o.join(
        c,
        F.expr(
            "o.itemID = c.itemID AND o.at <= c.at "
            f"AND o.at >= c.at - INTERVAL {WINDOW_S} SECONDS AND o.price > 0"
        ),
    ).select("o.itemID", "o.price", "c.buyerID")
    jobs = [
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        .trigger(availableNow=True)
        .start(str(folder / name))
        for name, frame in (
            ("filters", wanted.select("filter", "itemID", "price")),
            ("join", joined),
        )
    ]
    for job in jobs:
        job.awaitTermination()
    return sum(pq.read_metadata(f).num_rows for f in sorted(folder.glob("*/*.parquet")))


def _events(spark: Any, topic: Topic, name: str) -> Any:
    reader = spark.readStream.format("kafka").option("subscribe", topic.address.topic)
    reader = reader.option("startingOffsets", "earliest")
    reader = reader.option("kafka.bootstrap.servers", topic.address.servers)
    reader = reader.option("maxOffsetsPerTrigger", A_TICK)
    columns = COLUMNS[name].replace("VARCHAR", "STRING")  # Spark wants a length for the former
    parsed = F.from_json(F.col("value").cast("string"), f"ts BIGINT, {columns}").alias("e")
    frame = reader.load().select(parsed).select("e.*")
    # What is not above Spark's first watermark, the epoch, would be late.
    return frame.withColumn("at", F.timestamp_millis(F.col("ts") + F.lit(_SHIFT_MS)))
