"""What a tick takes at its peak, where sub-queries and joins have no equality.

Each query is run over two streams in one tick, in a process of its own, so that what an earlier one
has left behind does not count. Memory has to grow with what comes in and goes out, not with the
pairs that meet: where the input doubles, so does the peak.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.measure import Stopwatch
from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.results.emission import NoOutlet, TickOutput
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.experiments.report import Goal, Progress, Report

STREAMS = """
CREATE STREAM S (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT;
"""
# Where a query has no window, every tuple of one stream meets every one of the other; {window} is a
# tenth of them. `k` is unique in its stream, and a tenth of it is NULL in T. Few pairs pass.
QUERIES = {
    "NOT IN, instant by instant": "SELECT v FROM S [Now] WHERE k NOT IN (SELECT k FROM T [Now])",
    "NOT IN": "SELECT v FROM S WHERE k NOT IN (SELECT k FROM T)",
    "IN, marked": "SELECT v FROM S WHERE (k IN (SELECT k FROM T)) IS NULL OR v < 0",
    "EXISTS >, instant by instant": "SELECT v FROM S [Now]"
    " WHERE EXISTS (SELECT 1 FROM T [Now] WHERE T.k > S.k)",
    "EXISTS >": "SELECT v FROM S WHERE EXISTS (SELECT 1 FROM T WHERE T.k > S.k)",
    "NOT EXISTS <>": "SELECT v FROM S WHERE NOT EXISTS (SELECT 1 FROM T WHERE T.k <> S.k)",
    "LEFT JOIN >": "SELECT S.v, T.v AS w FROM S LEFT JOIN T ON T.k > S.k + {rare}",
    "a join by inequality": "SELECT S.v FROM S, T WHERE T.k > S.k + {rare}",
    "a band": "SELECT S.v FROM S, T WHERE T.k BETWEEN S.k + {rare} AND S.k + {rare} + 5",
    "a cross join": "SELECT S.v FROM S [Range {window}], T [Range {window}] WHERE S.v + T.v = 7",
    "RSTREAM of a maximum": "RSTREAM (SELECT MAX(k) AS m FROM S)",
    "a maximum beside a stream": "SELECT S.v FROM S, (SELECT MAX(k) AS m FROM T) AS M"
    " WHERE S.k > M.m",
}


@dataclass(frozen=True)
class Parameters:
    tuples: tuple[int, ...] = (5_000, 10_000, 20_000)  # of each stream, each twice the last
    queries: tuple[str, ...] = tuple(QUERIES)
    growth: float = 2.5  # of the peak where the input doubles, at most
    bytes_a_row: int = 10_000  # of what comes in and goes out, at most

    @classmethod
    def quick(cls) -> Parameters:
        return cls(tuples=(2_500, 5_000))


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows = []
    for number, query in enumerate(p.queries):
        for n in p.tuples:
            progress(f"{query}, {n:,} tuples a side", number / len(p.queries))
            rows.append({"query": query, "tuples a side": n, **in_own_process(measure, query, n)})
    goals = [g for query in p.queries for g in _goals(p, query, rows)]
    return Report("memory", "A tick's peak without an equality", asdict(p), rows, goals)


def _goals(p: Parameters, query: str, rows: list[dict[str, Any]]) -> list[Goal]:
    own = [r for r in rows if r["query"] == query]
    ratios = [b["peak MB"] / a["peak MB"] for a, b in pairwise(own)]
    return [
        Goal(f"{query}: growth", max(ratios, default=0.0), p.growth, "x", at_least=False),
        Goal(
            f"{query}: memory",
            max(r["bytes a row"] for r in own),
            p.bytes_a_row,
            "bytes a row",
            at_least=False,
        ),
    ]


def in_own_process(function: Callable[..., Any], *args: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args)


def measure(query: str, tuples: int) -> dict[str, Any]:
    """One tick over so many tuples a side; the peak is above what the process had before."""
    text = QUERIES[query].format(rare=tuples - 20, window=tuples // 10)
    script = compile_script(f"{STREAMS} CREATE QUERY q AS {text};")
    outlet = _Counting()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        engine = SharedEngine(Path(folder), outlet=outlet, durable=False, executor=InProcess(1))
        for stream in script.catalog.streams():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        _tick(engine, script.catalog.streams(), 100)  # what is loaded and compiled once
        before = _resident_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        outlet.rows = 0
        watch = Stopwatch()
        _tick(engine, script.catalog.streams(), tuples, first=200)
        seconds, peak = watch.seconds, _resident_bytes("VmHWM") - before
        engine.close()
    rows = 2 * tuples + outlet.rows
    return {
        "rows out": outlet.rows,
        "s": seconds,
        "peak MB": peak / 1e6,
        "bytes a row": peak / rows,
    }


class _Counting(NoOutlet):
    def __init__(self) -> None:
        self.rows = 0

    def wants(self, query: str) -> bool:
        return True

    def deliver(self, output: TickOutput) -> None:
        self.rows += sum(emission.rows.height for emission in output.each())


def _tick(engine: SharedEngine, streams: Any, tuples: int, first: int = 0) -> None:
    for number, stream in enumerate(streams):
        draw = np.random.default_rng(number)
        keys = pl.Series("k", draw.permutation(tuples), dtype=pl.Int64)
        if stream.name == "T":
            keys = keys.set(pl.Series(draw.random(tuples) < 0.1), None)
        batch = pl.DataFrame(
            {"k": keys, "v": np.arange(tuples), "ts": np.arange(first, first + tuples)}
        )
        engine.landing.push(stream, batch)
    engine.run_to_end()


def _resident_bytes(what: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(what)
