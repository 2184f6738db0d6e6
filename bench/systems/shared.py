"""The shared engine, with sharing on or off: one file of each stream a tick, rows to Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bench.auctions import SCHEMA, STREAMS, Batch
from bench.measure import CpuWatch, PeakMemory, Stopwatch
from bench.standing import Standing, script
from bench.systems.outcome import Outcome, as_said
from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine, Tick
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.state.outputs import EVERY_QUERY
from thalweg.engine.shared.tick.executors import Executor
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.parquet_tables import ParquetTablesSink

SINK = "tables"


class Running:
    """An engine with its queries registered, and a sink for all of them."""

    def __init__(
        self,
        queries: Sequence[Standing],
        executor: Executor,
        folder: Path,
        *,
        sharing: Sharing = Sharing.WHERE_IT_PAYS,
    ) -> None:
        watch = Stopwatch()
        outlet, self.out = SinkOutlet(), folder / "rows"
        self.engine = SharedEngine(folder / "data", executor, outlet=outlet, sharing=sharing)
        sink = ParquetTablesSink(self.out)
        open_where_it_was(self.engine.store, EVERY_QUERY, SINK, sink)
        outlet.attach_all(SINK, sink)
        compiled = compile_script(SCHEMA + script(queries))
        for stream in compiled.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(compiled.queries)
        self.start_s = watch.seconds

    def tick(self, batch: Batch) -> tuple[float, Tick]:
        """Seconds from the push of a tick's events to its rows in the sink, durable."""
        watch = Stopwatch()
        for stream, rows in batch.items():
            self.engine.push(stream, rows)
        tick = self.engine.tick()
        assert tick is not None
        return watch.seconds, tick

    def said(self) -> pl.DataFrame:
        tables = [
            pl.scan_parquet(folder / "*.parquet")
            .group_by(pl.col("_query").cast(pl.String).alias("query"))
            .agg(pl.len().alias("rows"), pl.col("itemID").sum().alias("items"))
            .collect()
            for folder in sorted(self.out.iterdir())
        ]
        return as_said(tables)


def run(
    queries: Sequence[Standing],
    files: Sequence[dict[str, Path]],
    executor: Executor,
    folder: Path,
    **options: Any,
) -> Outcome:
    running = Running(queries, executor, folder, **options)
    engine, seconds = running.engine, []
    with PeakMemory() as memory:
        cpu, watch = CpuWatch(), Stopwatch()
        for of in files:
            took, _ = running.tick({s: pl.read_parquet(f) for s, f in of.items()})
            seconds.append(took)
        for stream in STREAMS:
            engine.finish(stream)
        engine.run_to_end()
        outcome = {"seconds": watch.seconds, "cpu_s": cpu.seconds}
    groups = len(engine.roster.runs)
    engine.close()
    return Outcome(
        running.start_s,
        **outcome,
        said=running.said(),
        ticks=tuple(seconds),
        groups=groups,
        peak_bytes=memory.peak_bytes,
    )
