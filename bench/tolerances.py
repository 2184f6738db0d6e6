"""Many tolerance classes over one stream: what a tick costs, by the number of classes.

For readers elsewhere the stream's home labels its rows: one pass for all classes, and one reader
below who wants the rows of all of them. Queries at the home itself are computed there, each with a
tolerance of its own: their classes together, what stands above each of them for each query.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from thalweg.cql import compile_placed, compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.kernels import tolerances
from thalweg.engine.shared.state.names import LABELLED
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.publications import Publications
from thalweg.engine.site.settings import SiteSettings
from thalweg.experiments.report import Goal, Progress, Report
from thalweg.plan.nodes import Tolerant, walk
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.messages import Label
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.labels.labels import due_name
from thalweg.runtime.network.labels.passing import Due, Passing

STREAM = "CREATE STREAM Price (symbol INTEGER, price DOUBLE) TIMESTAMP BY ts BIGINT;\n"
_READER = "below"


@dataclass(frozen=True)
class Parameters:
    classes: tuple[int, ...] = (1, 100, 1_000, 10_000)
    rows: int = 1_000  # a tick
    symbols: int = 10
    ticks: int = 5  # that are measured, behind a first one
    most_queries: int = 1_000  # at the home
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(classes=(1, 100, 1_000), ticks=3, most_queries=100)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows = []
    for number, classes in enumerate(p.classes):
        progress(f"{classes:,} classes", number / len(p.classes))
        rows += _labelled(p, classes)
        if classes <= p.most_queries:
            rows.append(_queries(p, classes))
    most = p.classes[-1]
    many, one = (r["tick, CPU s"] for r in rows if r["classes"] == most and r["for"] == ELSEWHERE)
    goals = [
        Goal(f"{most:,} classes, a tick of {p.rows:,} rows", many, 0.6, "s of CPU", False),
        Goal(f"{most:,} classes, a tick of one row", 1e3 * one, 100.0, "ms of CPU", False),
    ]
    return Report("tolerances", "Many tolerances over one stream", asdict(p), rows, goals)


ELSEWHERE, HERE = "readers elsewhere", "queries"


class _Prices:
    """Prices that walk at random, a tick at a time."""

    def __init__(self, p: Parameters) -> None:
        self._rng = np.random.default_rng(p.seed)
        self._amounts = self._rng.choice(90_000, size=90_000, replace=False) + 10_000
        self._symbols, self._now = p.symbols, 0
        self._prices = np.full(p.symbols, 50.0)

    def text(self, classes: int) -> str:
        """Queries, each with a tolerance of its own."""
        return STREAM + "".join(
            f"CREATE QUERY q{i} AS SELECT symbol, price FROM Price [Now] "
            f"TOLERANCE price {a / 1e6:.6f} PER symbol;\n"
            for i, a in enumerate(self._amounts[:classes])
        )

    def rows(self, count: int) -> pl.DataFrame:
        each = -(-count // self._symbols)
        steps = self._rng.normal(0, 0.005, (each, self._symbols)).cumsum(axis=0)
        price = (self._prices + steps).ravel()[:count]
        symbol = (np.arange(count) % self._symbols).astype(np.int32)
        self._prices[symbol] = price
        stamps = np.arange(self._now, self._now + count)
        self._now += count
        return pl.DataFrame({"symbol": symbol, "price": price, "ts": stamps})


# --- for readers elsewhere


def _labelled(p: Parameters, classes: int) -> list[dict[str, Any]]:
    prices, spent = _Prices(p), _Spent(Passing, "run")
    nodes = [
        next(n for n in walk(q.plan) if isinstance(n, Tolerant))
        for q in compile_script(prices.text(classes)).queries
    ]
    labelling = Labelling()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder, spent:
        site = open_site(
            Path(folder),
            compile_placed,
            master=IN_PROCESS,
            settings=SiteSettings(durable=False, tick_interval_s=0.01),
            schemes={LABELLED: labelling.source},
        )
        try:
            site.execute(STREAM)
            publications = Publications(site)
            labelling.attach(site, publications)
            packed = tuple(map(encode_plan, nodes))
            names = "symbol", "price"
            labelling.label(Label("Price", _READER, packed, 0, names))
            due = due_name("Price")
            numbers = ",".join(str(s.number) for s in labelling.book(due).starts)
            where = (f"HAS_ANY(due_for, '{numbers}')",)
            columns = (*names, "due_for")
            opened, _ = publications.open(due, _READER, 1, 0, where, columns=columns)
            below = _Below(site, publications, opened)
            found = []
            for rows in (p.rows, 1):
                below.take(prices.rows(rows))
                spent.seconds, spent.due, came = 0.0, 0, below.rows
                total = sum(below.take(prices.rows(rows)) for _ in range(p.ticks))
                came = below.rows - came
                found.append(_row(p, classes, ELSEWHERE, rows, spent, total, came))
            return found
        finally:
            site.close()


class _Below:
    """A reader of all that is due."""

    def __init__(self, site: Site, publications: Publications, name: str) -> None:
        self._site, self._publications, self._name = site, publications, name
        self._since, self._time, self.rows = 0, 0, 0

    def take(self, rows: pl.DataFrame) -> float:
        """CPU seconds of the process until what is due of these rows has come."""
        began = time.process_time()
        self._site.push("Price", rows)
        until = int(rows["ts"].max())  # type: ignore[arg-type]
        while self._since < until:
            seen = self._site.changes.count
            for piece in self._publications.read(self._name, self._since):
                self._since = piece.upto
                self.rows += piece.rows.height
            self._site.engine.readers.acknowledge(self._name, self._since)
            if self._since < until:
                self._site.changes.wait(seen, 1.0)
        return time.process_time() - began


# --- queries at the home


def _queries(p: Parameters, classes: int) -> dict[str, Any]:
    prices, spent = _Prices(p), _Spent(tolerances._Classes, "passed")
    script = compile_script(prices.text(classes))
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder, spent:
        engine = SharedEngine(Path(folder), durable=False, executor=InProcess(1))
        (stream,) = script.catalog.streams()
        engine.add_stream(stream)
        engine.add_queries(script.queries)
        total = 0.0
        for tick in range(p.ticks + 1):
            engine.push("Price", prices.rows(p.rows))
            if tick == 1:
                spent.seconds, total = 0.0, 0.0
            began = time.process_time()
            engine.run_to_end()
            total += time.process_time() - began
        engine.close()
    return _row(p, classes, HERE, p.rows, spent, total)


def _row(
    p: Parameters,
    classes: int,
    readers: str,
    rows: int,
    spent: _Spent,
    total_s: float,
    due: int | None = None,
) -> dict[str, Any]:
    return {
        "classes": classes,
        "for": readers,
        "rows a tick": rows,
        "keys": p.symbols,
        "due, a tick": None if due is None else due / p.ticks,
        "classes, a row": None if due is None else spent.due / (rows * p.ticks),
        "deciding, µs a row": round(spent.seconds / (rows * p.ticks) * 1e6, 1),
        "tick, CPU s": round(total_s / p.ticks, 4),
    }


class _Spent:
    """CPU seconds of a thread's in a method, and for how many classes rows were due."""

    def __init__(self, of: type, method: str) -> None:
        self._of, self._method, self.seconds, self.due = of, method, 0.0, 0

    def __enter__(self) -> None:
        self._kernel = kernel = getattr(self._of, self._method)

        def timed(*args: Any) -> Any:
            began = time.thread_time()
            found = kernel(*args)
            self.seconds += time.thread_time() - began
            self.due += len(found.row) if isinstance(found, Due) else 0
            return found

        setattr(self._of, self._method, timed)

    def __exit__(self, *_: object) -> None:
        setattr(self._of, self._method, self._kernel)
