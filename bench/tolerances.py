"""Many tolerance classes over one stream: what a tick costs, by the number of classes.

Each class is a query of its own tolerance over prices that walk at random. The classes of the
stream are computed together; what stands above each of them is computed for each query.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.kernels import tolerances
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.experiments.report import Goal, Progress, Report
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import Tolerant, walk
from thalweg.runtime.network.labels.labelling import class_plan

STREAM = "CREATE STREAM Price (symbol INTEGER, price DOUBLE) TIMESTAMP BY ts BIGINT;\n"


@dataclass(frozen=True)
class Parameters:
    classes: tuple[int, ...] = (1, 100, 1_000, 10_000)
    rows: int = 1_000  # a tick
    symbols: int = 10
    ticks: int = 3  # that are measured, behind a first one
    most_published: int = 1_000
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(classes=(1, 100, 1_000), ticks=2)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows = []
    for number, classes in enumerate(p.classes):
        progress(f"{classes:,} classes", number / len(p.classes))
        rows.append(_measured(p, classes))
        if classes <= p.most_published:
            rows.append(_measured(p, classes, published=True))
    (per_row,) = [r["classes, µs a row"] for r in rows if r["classes"] == p.classes[-1]][:1]
    goals = [Goal(f"{p.classes[-1]:,} classes, a row", per_row, 1_500.0, "µs of CPU", False)]
    return Report("tolerances", "Many tolerances over one stream", asdict(p), rows, goals)


def _measured(p: Parameters, classes: int, *, published: bool = False) -> dict[str, Any]:
    """Queries, or what the stream's home publishes for readers at other nodes."""
    rng = np.random.default_rng(p.seed)
    amounts = rng.choice(90_000, size=classes, replace=False) + 10_000
    text = STREAM + "".join(
        f"CREATE QUERY q{i} AS SELECT symbol, price FROM Price [Now] "
        f"TOLERANCE price {a / 1e6:.6f} PER symbol;\n"
        for i, a in enumerate(amounts)
    )
    script = compile_script(text)
    spent = _Spent()
    prices = np.full(p.symbols, 50.0)
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder, spent:
        engine = SharedEngine(Path(folder), durable=False, executor=InProcess(1))
        (stream,) = script.catalog.streams()
        engine.add_stream(stream)
        queries = script.queries
        if published:
            queries = tuple(_published(q, stream) for q in queries)
        engine.add_queries(queries)
        total = 0.0
        for tick in range(p.ticks + 1):
            symbol = np.arange(p.rows) % p.symbols
            steps = rng.normal(0, 0.005, (p.rows // p.symbols, p.symbols)).cumsum(axis=0)
            price = (prices + steps).ravel()
            prices = prices + steps[-1]
            stamps = np.arange(tick * p.rows, (tick + 1) * p.rows)
            batch = pl.DataFrame({"symbol": symbol, "price": price, "ts": stamps})
            engine.push("Price", batch.with_columns(pl.col("symbol").cast(pl.Int32)))
            if tick == 1:
                spent.seconds, total = 0.0, 0.0
            began = time.process_time()
            engine.run_to_end()
            total += time.process_time() - began
        engine.close()
    measured = p.rows * p.ticks
    return {
        "classes": classes,
        "for": "readers elsewhere" if published else "queries",
        "rows a tick": p.rows,
        "keys": p.symbols,
        "classes, µs a row": round(spent.seconds / measured * 1e6, 1),
        "tick, CPU s": round(total / p.ticks, 3),
    }


def _published(query: QueryDef, stream: StreamDef) -> QueryDef:
    (node,) = (n for n in walk(query.plan) if isinstance(n, Tolerant))
    return QueryDef(query.name, class_plan(stream, query.name, node))


class _Spent:
    """CPU seconds in the classes' kernel, state read and written."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._kernel = tolerances._Classes.passed

        def timed(classes: tolerances._Classes) -> dict[str, pl.DataFrame]:
            began = time.process_time()
            found = self._kernel(classes)
            self.seconds += time.process_time() - began
            return found

        tolerances._Classes.passed = timed  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        tolerances._Classes.passed = self._kernel  # type: ignore[method-assign]
