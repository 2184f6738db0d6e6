"""The shared engine in the form that the conformance kit asks for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from tests.conformance.runner import Inputs

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.results.emission import NoOutlet, TickOutput
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef

WAYS = ("one task", "rows", "runs")  # how a tick's work is divided among tasks


def divided(way: str) -> dict[str, Any]:
    """An engine's options for that, however small the ticks."""
    return {
        "executor": InProcess(1 if way == "one task" else 2),
        "rows_for_more_tasks": 0 if way == "rows" else 1 << 40,
        "seconds_for_more_tasks": 0,
    }


class Collect(NoOutlet):
    """An outlet that keeps what each query said."""

    def __init__(self) -> None:
        self.results: dict[str, list[Change]] = {}

    def wants(self, query: str) -> bool:
        return True

    def deliver(self, output: TickOutput) -> None:
        for emission in output.each():
            self.results.setdefault(emission.query, []).extend(changes(emission.rows))


def shared_engine(
    catalog: Catalog,
    queries: Sequence[QueryDef],
    inputs: Inputs,
    options: Options,
    *,
    tuples_per_tick: int = 1_000,
    **how: Any,
) -> dict[str, list[Change]]:
    """Run queries over recorded arrivals, so many of each stream to a tick."""
    outlet = Collect()
    with tempfile.TemporaryDirectory() as folder:
        engine = SharedEngine(
            Path(folder), outlet=outlet, durable=False, **{"rows_for_more_tasks": 0, **how}
        )
        for stream in catalog.streams():
            engine.add_stream(stream)
        engine.add_queries(queries)
        _begin_as(engine, options)
        feed(engine, catalog, inputs, tuples_per_tick)
        engine.close()
    return {q.name: outlet.results.get(q.name, []) for q in queries}


def _begin_as(engine: SharedEngine, options: Options) -> None:
    """Let the queries start, and their history begin, where a case says."""
    horizons = tuple(sorted(options.get("horizons", {}).items()))
    engine.roster.add(
        [
            replace(query, started=options.get("start"), horizons=horizons)
            for query in engine.roster.queries.values()
        ]
    )


def feed(engine: SharedEngine, catalog: Catalog, inputs: Inputs, tuples_per_tick: int) -> None:
    streams = {s.name: s for s in catalog.streams()}
    for name, arrivals in inputs.items():
        engine.landing.declare(streams[name], sorted({a.partition for a in arrivals}))
    waiting = {name: iter(arrivals) for name, arrivals in inputs.items()}
    while waiting:
        for name, arrivals in list(waiting.items()):
            chunk = list(islice(arrivals, tuples_per_tick))
            if not chunk:
                engine.finish(name)
                del waiting[name]
            push(engine, streams[name], chunk)
        engine.run_to_end()
    engine.run_to_end()


def push(engine: SharedEngine, stream: StreamDef, arrivals: Sequence[Arrival]) -> None:
    for partition in sorted({a.partition for a in arrivals}):
        part = [a for a in arrivals if a.partition == partition]
        engine.landing.push(
            stream, batch(stream, part), partition=partition, positions=[a.position for a in part]
        )


def batch(stream: StreamDef, arrivals: Sequence[Arrival]) -> pl.DataFrame:
    columns = {
        f.name: pl.Series([a.row[i] for a in arrivals], dtype=dtype(f.type))
        for i, f in enumerate(stream.fields)
    }
    if stream.timestamp_index is None:
        stamps = [a.timestamp for a in arrivals]
        if stream.timestamp_type.is_integer:
            columns[stream.timestamp] = pl.Series(stamps, dtype=pl.Int64)
        else:
            micros = pl.Series([s * stream.resolution_us for s in stamps], dtype=pl.Int64)
            columns[stream.timestamp] = micros.cast(pl.Datetime("us"))
    if stream.is_relation:
        columns["op"] = pl.Series([a.op for a in arrivals], dtype=pl.String)
    return pl.DataFrame(columns)


def changes(rows: pl.DataFrame) -> list[Change]:
    return [Change(ts, "+" if op > 0 else "-", tuple(row)) for ts, op, *row in rows.iter_rows()]
