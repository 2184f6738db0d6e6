"""Ticks of a standing load, measured once the windows are full."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from bench.auctions import Batch
from bench.measure import CpuWatch, PeakMemory, percentile
from bench.standing import Standing
from bench.systems.shared import Running
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.experiments.report import Progress


def measure(
    queries: Sequence[Standing],
    made: Iterator[Batch],
    spark: Any,
    warmup: int,
    ticks: int,
    progress: Progress,
) -> dict[str, Any]:
    """A row of a report: the ticks behind the first `warmup`."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder, PeakMemory() as memory:
        progress(f"registering {len(queries):,} queries")
        running = Running(queries, OnSpark(spark.sparkContext), Path(folder))
        seconds, phases, events, rows_out = [], [], 0, 0
        for number, batch in enumerate(islice(made, warmup + ticks)):
            progress(f"tick {number + 1}", number / (warmup + ticks))
            if number == warmup:
                cpu = CpuWatch()
            took, tick = running.tick(batch)
            if number >= warmup:
                seconds.append(took)
                phases.append(tick.by_phase)
                events += sum(rows.height for rows in batch.values())
                rows_out += tick.rows_out
        row = {
            "queries": len(queries),
            "groups": len(running.engine.roster.runs),
            "start s": running.start_s,
            "median s": percentile(seconds, 50),
            "p95 s": percentile(seconds, 95),
            "cpu s a tick": cpu.seconds / ticks,
            "events a tick": events // ticks,
            "events/s": events / ticks / percentile(seconds, 50),
            "rows out a tick": rows_out // ticks,
            **{f"{name} s": percentile([p[name] for p in phases], 50) for name in phases[0]},
        }
        running.engine.close()
    return row | {"peak MB": memory.peak_bytes / 1e6}
