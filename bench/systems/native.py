"""Spark alone: a Structured Streaming job for every query, all at once in one session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from bench.auctions import SCHEMA
from bench.measure import CpuWatch, PeakMemory, Stopwatch
from bench.standing import Standing, script
from bench.systems.outcome import Outcome, Unable, as_said
from thalweg.cql import compile_script
from thalweg.engine.native import start


def run(
    queries: Sequence[Standing], data: Path, spark: Any, folder: Path, limit_s: float
) -> Outcome:
    watch = Stopwatch()
    compiled = compile_script(SCHEMA + script(queries))
    folders = {s.name: data / s.name for s in compiled.catalog.streams()}
    start_s = watch.seconds
    jobs: list[Any] = []
    with PeakMemory() as memory:
        cpu, watch = CpuWatch(), Stopwatch()
        try:
            for query in compiled.queries:
                jobs.append(start(spark, query.plan, folders, folder / query.name))
                _check(watch, limit_s)
            for job in jobs:
                if not job.awaitTermination(max(0.001, limit_s - watch.seconds)):
                    _check(watch, 0.0)
        finally:
            for job in jobs:
                job.stop()  # does nothing where a job has ended
        outcome = {"seconds": watch.seconds, "cpu_s": cpu.seconds}
    said = [_said(q.name, folder / q.name / "rows") for q in compiled.queries]
    return Outcome(start_s, **outcome, said=as_said(said), peak_bytes=memory.peak_bytes)


def _check(watch: Stopwatch, limit_s: float) -> None:
    if watch.seconds > limit_s:
        raise Unable(f"stopped after {watch.seconds:.0f} s")


def _said(query: str, folder: Path) -> pl.DataFrame:
    files = sorted(folder.glob("*.parquet"))
    rows = pl.read_parquet(files, columns=["o0"])["o0"] if files else pl.Series([], dtype=pl.Int64)
    return pl.DataFrame({"query": [query], "rows": [len(rows)], "items": [rows.sum()]})
