"""How long a tick takes: 1,000 to 200,000 new events over a 30-tick window, 1 and 40 joins.

A tick's latency is from the push of its events to its results in a Parquet sink, durable.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from bench.measure import Stopwatch, percentile
from thalweg.cql import compile_script
from thalweg.engine.session import spark_session
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.experiments.report import Goal, Progress, Report

INSTANTS_PER_TICK = 1_000
WINDOW_TICKS = 30
SCHEMA = """
CREATE STREAM O (itemID BIGINT, sellerID BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (itemID BIGINT, buyerID BIGINT) TIMESTAMP BY ts BIGINT;
"""


@dataclass(frozen=True)
class Parameters:
    events: tuple[int, ...] = (1_000, 20_000, 200_000)
    joins: tuple[int, ...] = (1, 40)
    ticks: int = 30  # measured, after the window has filled
    cores: int = 2
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(events=(1_000, 20_000), ticks=10)


def run(parameters: Parameters, progress: Progress) -> Report:
    spark = spark_session(f"local[{parameters.cores}]")
    rows = []
    try:
        for joins in parameters.joins:
            for events in parameters.events:
                progress(f"{joins} joins, {events:,} new events a tick")
                rows.append(_measure(parameters, spark, joins, events))
    finally:
        spark.stop()
    goals = [
        Goal(f"median tick, 1 join, {r['events']:,} events", r["median s"], bound, "s", False)
        for r in rows
        for events, bound in ((1_000, 0.4), (200_000, 1.0))
        if r["joins"] == 1 and r["events"] == events
    ]
    return Report("tick", "Latency of a tick", asdict(parameters), rows, goals)


def queries(joins: int) -> str:
    """Distinct window joins: each its own window and predicate, nothing to merge."""
    window = WINDOW_TICKS * INSTANTS_PER_TICK
    return SCHEMA + "".join(
        f"CREATE QUERY j{i} AS SELECT ISTREAM O.itemID, O.price, C.buyerID "
        f"FROM O [Range {window - i}], C [Now] WHERE O.itemID = C.itemID AND O.price > {i};\n"
        for i in range(joins)
    )


def batches(events: int, seed: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Items open once and close within the window, half of all events each."""
    random = np.random.default_rng(seed)
    half, tick = events // 2, 0
    while True:
        stamps = np.sort(random.integers(0, INSTANTS_PER_TICK, half)) + tick * INSTANTS_PER_TICK
        items = np.arange(half) + tick * half
        closed = items - random.integers(0, half * WINDOW_TICKS // 2, half)
        price = random.random(half) * 1000
        yield (
            pl.DataFrame({"ts": stamps, "itemID": items, "sellerID": items % 997, "price": price}),
            pl.DataFrame({"ts": stamps, "itemID": closed, "buyerID": items % 991}),
        )
        tick += 1


def _measure(parameters: Parameters, spark, joins: int, events: int) -> dict:  # type: ignore[no-untyped-def]
    script = compile_script(queries(joins))
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        outlet = SinkOutlet()
        engine = SharedEngine(Path(folder) / "data", OnSpark(spark.sparkContext), outlet=outlet)
        for stream in script.catalog.streams():
            engine.add_stream(stream)
        for query in script.queries:
            sink = ParquetSink(Path(folder) / query.name)
            open_where_it_was(engine.store, query.name, "parquet", sink)
            outlet.attach(query.name, "parquet", sink)
        engine.add_queries(script.queries)
        seconds, phases, rows_out = [], [], 0
        for number, (opened, closed) in enumerate(batches(events, parameters.seed)):
            watch = Stopwatch()
            engine.push("O", opened)
            engine.push("C", closed)
            pushed = watch.seconds
            tick = engine.tick()
            assert tick is not None
            if number >= WINDOW_TICKS:
                seconds.append(watch.seconds)
                phases.append({"push": pushed, **tick.by_phase})
                rows_out += tick.rows_out
            if len(seconds) == parameters.ticks:
                break
        engine.close()
    return {
        "joins": joins,
        "events": events,
        "median s": percentile(seconds, 50),
        "p95 s": percentile(seconds, 95),
        "rows out a tick": rows_out // len(seconds),
        "events/s": events / percentile(seconds, 50),
        **{f"{name} s": percentile([p[name] for p in phases], 50) for name in phases[0]},
    }
