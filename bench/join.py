"""The auction join, shared against native: same files, same batches, rows to a Parquet sink.

    SELECT ISTREAM … FROM OpenAuction [Range 5 Hour] O, ClosedAuction [Now] C
    WHERE O.itemID = C.itemID

`native` is the query as one writes it by hand for Structured Streaming (`engine.native.plain`), one
file of each stream a batch; `shared` takes one file of each stream a tick. Results are compared.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from bench.measure import PeakMemory, Stopwatch, disk_bytes, percentile
from thalweg.cql import compile_script
from thalweg.engine.generators import open_generator, write_files
from thalweg.engine.native import plain
from thalweg.engine.session import spark_session
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.experiments.report import Goal, Progress, Report

STREAMS = ("OpenAuction", "ClosedAuction")
CQL = """
CREATE STREAM OpenAuction (itemID BIGINT, sellerID BIGINT, start_price DOUBLE, timestamp TIMESTAMP)
    TIMESTAMP BY timestamp;
CREATE STREAM ClosedAuction (itemID BIGINT, buyerID BIGINT, timestamp TIMESTAMP)
    TIMESTAMP BY timestamp;
CREATE QUERY closed AS
    SELECT ISTREAM O.itemID, O.sellerID, O.start_price, O.timestamp AS opened,
                   C.buyerID, C.timestamp AS closed
    FROM OpenAuction [Range 5 Hour] O, ClosedAuction [Now] C
    WHERE O.itemID = C.itemID;
"""


@dataclass(frozen=True)
class Parameters:
    events: int = 8_000_000
    rows_per_file: int = 250_000
    rate: float = 1_667.0  # of all auction events; 100 of them open an auction, a second
    seed: int = 7
    cores: int = 2
    state_store: str = "memory"
    systems: str = "shared,native"

    @classmethod
    def quick(cls) -> Parameters:
        return cls(events=1_000_000)


def run(parameters: Parameters, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary:
        folder = Path(temporary)
        progress(f"writing {parameters.events:,} events")
        _write(parameters, folder / "data")
        script = compile_script(CQL)
        spark = spark_session(f"local[{parameters.cores}]")
        rows = []
        try:
            _warm(spark)
            for system in parameters.systems.split(","):
                progress(f"running {system}")
                measure = _shared if system == "shared" else _native
                with PeakMemory() as memory:
                    row = measure(parameters, spark, script, folder)
                rows.append({"system": system, **row, "peak memory MB": memory.peak_bytes / 1e6})
            same = _same_results(folder) if len(rows) == 2 else None
        finally:
            spark.stop()
    by = {r["system"]: r for r in rows}
    goals = []
    if len(rows) == 2:
        ratio = by["shared"]["events/s"] / by["native"]["events/s"]
        goals.append(Goal("events/s, shared over native", ratio, 4.0, "x"))
        goals.append(Goal("results equal", float(bool(same)), 1.0))
    return Report("join", "Auction join, shared and native", asdict(parameters), rows, goals)


def _write(parameters: Parameters, folder: Path) -> None:
    options = {
        "seed": str(parameters.seed),
        "rate": str(parameters.rate),
        "limit": str(parameters.events // 2),
    }
    for stream in STREAMS:
        generator = open_generator(f"generator:auctions/{stream}", options)
        write_files(generator.generator, stream, folder / stream, parameters.rows_per_file)


def _warm(spark) -> None:  # type: ignore[no-untyped-def]
    """Start the Python workers and load the libraries before any clock runs."""
    spark.sparkContext.parallelize(range(4), 4).map(lambda i: __import__("polars") and i).collect()
    spark.range(10).count()


def _shared(parameters: Parameters, spark, script, folder: Path) -> dict:  # type: ignore[no-untyped-def]
    outlet = SinkOutlet()
    engine = SharedEngine(folder / "shared", OnSpark(spark.sparkContext), outlet=outlet)
    sink = ParquetSink(folder / "shared-rows")
    open_where_it_was(engine.store, "closed", "parquet", sink)
    outlet.attach("closed", "parquet", sink)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    files = [sorted((folder / "data" / s).iterdir()) for s in STREAMS]
    watch, ticks, state = Stopwatch(), [], 0
    for pair in zip(*files, strict=True):
        for stream, file in zip(STREAMS, pair, strict=True):
            engine.push(stream, pl.read_parquet(file))
        tick = engine.tick()
        assert tick is not None
        ticks.append(tick)
        state = max(state, disk_bytes(folder / "shared" / "segments"))
    for stream in STREAMS:
        engine.finish(stream)
    ticks += engine.run_to_end()
    seconds = watch.seconds
    engine.close()
    return {
        "events/s": parameters.events / seconds,
        "seconds": seconds,
        "median batch s": percentile([t.seconds for t in ticks], 50),
        "rows out": sum(t.rows_out for t in ticks),
        "state on disk MB": state / 1e6,
    }


def _native(parameters: Parameters, spark, script, folder: Path) -> dict:  # type: ignore[no-untyped-def]
    (query,) = script.queries
    folders = {s: folder / "data" / s for s in STREAMS}
    measured = plain.measure(
        spark, query.plan, folders, folder / "native", state_store=parameters.state_store
    )
    return {
        "events/s": measured.events_per_second,
        "seconds": measured.seconds,
        "median batch s": percentile(measured.batch_seconds, 50),
        "rows out": measured.rows_out,
        "state on disk MB": measured.checkpoint_bytes / 1e6,
    }


def _same_results(folder: Path) -> bool:
    ours = pl.read_parquet(folder / "shared-rows" / "*.parquet")
    ours = ours.drop("_ts", "_op")
    theirs = pl.read_parquet(folder / "native" / "rows" / "*.parquet").drop("ts")
    theirs.columns = ours.columns
    return ours.sort(ours.columns).equals(theirs.cast(dict(ours.schema)).sort(ours.columns))
