"""How soon a row is there: a tick's time, and an event's way to its durable, delivered row.

Three ways to run small ticks, side by side and in turns on the same events, so that other load on
the machine meets all of them: a Spark job for each tick, this process (the kernels' floor, without
Spark), and resident tasks. Beside them, peers (`latency_peers.py`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.auctions import batches
from bench.latency_peers import flink_row, real_time_row
from bench.measure import CpuWatch, Stopwatch, percentile
from bench.standing import Standing
from bench.submit import SCHEMA, World
from bench.systems.outcome import Unable
from bench.systems.shared import Running
from bench.warm import warmed
from thalweg.cql import compile_script
from thalweg.engine.session import spark_session
from thalweg.engine.shared.tick.executors import Executor, InProcess, OnResidents, OnSpark
from thalweg.engine.site import Site
from thalweg.experiments.report import Goal, Progress, Report

JOB, HERE, RESIDENT = "a job a tick", "in process", "resident"
FLINK, REAL_TIME = "flink", "real-time"
WINDOW_S = 30
_MS = 1_000


@dataclass(frozen=True)
class Parameters:
    events: int = 1_000  # new ones a tick
    ticks: int = 60  # measured, after the window has filled
    repeats: int = 60  # of an event, for each way and number of queries
    gap_s: float = 0.15  # between events: one that comes alone
    queries: int = 1_000  # that stand beside the one that is measured
    history: int = 20_000  # tuples of each stream that are there when events are measured
    cores: int = 2
    peers: tuple[str, ...] = (FLINK, REAL_TIME)
    checkpoints_ms: tuple[int, ...] = (10, 100)  # Flink's; it takes no shorter ones
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(ticks=15, repeats=10, queries=100, history=5_000, peers=())


_ABOUT_PEERS = (
    "Flink's row of the same join is in a CSV file that a checkpoint has committed; its events "
    "come over sockets and are durable nowhere. Real-Time Mode knows no joins and no files: a "
    "filter from one Kafka topic to another, at least once, and nothing is synced."
)


def run(parameters: Parameters, progress: Progress) -> Report:
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder,
        warmed(spark_session(f"local[{parameters.cores}]")) as spark,
        ExitStack() as held,
    ):
        sync_ms = fsync_ms(Path(folder))
        residents = held.enter_context(closing(OnResidents(spark.sparkContext)))
        ways = {JOB: OnSpark(spark.sparkContext), HERE: InProcess(), RESIDENT: residents}
        progress(f"ticks of {parameters.events:,} events")
        ticks = tick_rows(parameters, ways, Path(folder) / "ticks")
        few = event_rows(parameters, ways, Path(folder) / "few", 0, progress)
        many = event_rows(parameters, ways, Path(folder) / "many", parameters.queries, progress)
    notes = [
        f"An fsync of 4 KB takes {sync_ms:.2f} ms here (median). "
        f"The machine's load was {load:.1f} when it began, on {os.cpu_count()} cores.",
        "An event's row: an item opens and closes (two pushes and two heartbeats, each of them "
        "durable), and its row of the standing join is in a file of JSON lines, committed and read "
        f"back. Events are {parameters.gap_s:g} s apart.",
    ]
    own = [*ticks, *few, *many]
    peers, missing = peer_rows(parameters, progress)
    return Report(
        "latency",
        "From an event to its row",
        asdict(parameters),
        own + peers,
        goals(own),
        notes + [_ABOUT_PEERS] * bool(peers) + missing,
    )


def peer_rows(parameters: Parameters, progress: Progress) -> tuple[list[dict[str, Any]], list[str]]:
    """And which of them could not be measured, and why."""
    p = parameters
    ways: list[tuple[str, Callable[[Path], dict[str, Any]]]] = []
    if FLINK in p.peers:
        ways += [
            (f"Flink SQL, {ms} ms", partial(flink_row, p.repeats, p.gap_s, ms))
            for ms in p.checkpoints_ms
        ]
    if REAL_TIME in p.peers:
        ways.append(("Real-Time Mode", partial(real_time_row, p.repeats, p.gap_s)))
    rows, missing = [], []
    for name, measure in ways:
        progress(name)
        with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
            try:
                rows.append(measure(Path(folder) / "peer"))
            except Unable as error:
                missing.append(f"{name} was not measured: {error}.")
    return rows, missing


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
    found = {(r["what"], r["way"], r["queries"]): r for r in rows}
    most = max(r["queries"] for r in rows)
    tick = {way: found["tick", way, 1]["median ms"] for way in (HERE, RESIDENT)}
    one, all_ = found["event to row", RESIDENT, 1], found["event to row", RESIDENT, most]
    return [
        Goal("resident tick over the one in process", tick[RESIDENT] - tick[HERE], 5, "ms", False),
        Goal("median resident tick", tick[RESIDENT], 40, "ms", False),
        Goal("event to row, median", one["median ms"], 35, "ms", False),
        Goal("event to row, 95 %", one["p95 ms"], 80, "ms", False),
        Goal(
            f"the median with {most:,} queries over one query's",
            all_["median ms"] / one["median ms"],
            2,
            "times",
            False,
        ),
    ]


def tick_rows(
    parameters: Parameters, ways: dict[str, Executor], folder: Path
) -> list[dict[str, Any]]:
    """Each way has an engine of its own; a batch goes through all of them before the next."""
    query = Standing("sold", WINDOW_S, ("O.price >= 100",))
    running = {way: Running([query], how, folder / way) for way, how in ways.items()}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    cpu = dict.fromkeys(ways, 0.0)
    made = batches(parameters.events, parameters.seed, WINDOW_S)
    for number, batch in enumerate(islice(made, WINDOW_S + parameters.ticks)):
        for way, of in running.items():
            watch = CpuWatch()
            took, _ = of.tick(batch)
            if number >= WINDOW_S:
                seconds[way].append(took)
                cpu[way] += watch.seconds
    for of in running.values():
        of.engine.close()
    return [
        _row("tick", way, 1, found) | {"cpu ms": cpu[way] / len(found) * _MS}
        for way, found in seconds.items()
    ]


def event_rows(
    parameters: Parameters,
    ways: dict[str, Executor],
    folder: Path,
    others: int,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Sites with a standing join and so many queries beside it; an event at each in turn."""
    progress(f"single events, {others + 1:,} queries")
    with ExitStack() as held:
        worlds = {
            way: held.enter_context(_world(parameters, how, folder / way, others))
            for way, how in ways.items()
        }
        seconds: dict[str, list[float]] = {way: [] for way in worlds}
        for number in range(-3, parameters.repeats):
            for way, world in worlds.items():
                time.sleep(parameters.gap_s)
                took = world.event(10 + number)
                if number >= 0:
                    seconds[way].append(took)
    return [_row("event to row", way, 1 + others, found) for way, found in seconds.items()]


@contextmanager
def _world(
    parameters: Parameters, executor: Executor, folder: Path, others: int
) -> Iterator[World]:
    folder.mkdir(parents=True)
    site = Site(folder / "data", compile_script, executor, open_source=_no_source)
    try:
        site.execute(SCHEMA + alike(others, parameters.seed))
        site.write_to("standing", "jsonl:rows.jsonl", folder)
        yield World(site, parameters.history)
    finally:
        site.close()


def _no_source(*_: Any) -> Any:
    raise AssertionError("all streams are pushed to")


def alike(count: int, seed: int) -> str:
    """Joins and filters with drawn constants, over the streams of `bench.submit`."""
    drawn = np.random.default_rng(seed)
    lows = drawn.uniform(0, 990, count)
    texts: tuple[Callable[[float], str], ...] = (
        lambda low: (
            "SELECT O.item, C.buyer FROM O [Range 30 Second], C [Range 30 Second] "
            f"WHERE O.item = C.item AND O.price >= {low:.3f} AND O.price < {low + 10:.3f}"
        ),
        lambda low: (
            f"SELECT ISTREAM item FROM O [Now] WHERE price >= {low:.3f} AND price < {low + 10:.3f}"
        ),
    )
    made = (texts[i % len(texts)](low) for i, low in enumerate(lows))
    return "".join(f"CREATE QUERY q{i} AS {text};\n" for i, text in enumerate(made))


def fsync_ms(folder: Path, times: int = 50) -> float:
    took = []
    with (folder / "synced").open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            watch = Stopwatch()
            os.fsync(file.fileno())
            took.append(watch.seconds)
    return percentile(took, 50) * _MS


def _row(what: str, way: str, queries: int, seconds: list[float]) -> dict[str, Any]:
    return {
        "what": what,
        "way": way,
        "queries": queries,
        "median ms": percentile(seconds, 50) * _MS,
        "p95 ms": percentile(seconds, 95) * _MS,
    }
