"""Nodes beside one: what it costs, and how long it takes, that rows are wanted elsewhere.

Nodes are processes on this machine, with engines inside them; what passes between them goes over
loopback. CPU seconds are those of the processes, which others on the machine hardly change.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import (
    network_brokers,
    network_cosmos,
    network_delay,
    network_gone,
    network_join,
    network_ranges,
    network_subscription,
)
from bench.measure import percentile
from thalweg.experiments.report import Goal, Progress, Report

NAMES = ("subscription", "join", "ranges", "gone", "delays", "brokers", "cosmos")


@dataclass(frozen=True)
class Parameters:
    rows: int = 2_000_000  # of a subscription, 100 bytes each
    batch: int = 100_000
    subscriptions: int = 1_000  # of disjoint ranges
    range_rows: int = 1_000_000  # a tick, of all of them
    range_ticks: int = 5
    events: int = 40_000  # a tick of the join, half of them of each input
    ticks: int = 20
    warm: int = 30  # ticks until the join's window is full
    single_events: int = 200  # whose delay is measured
    tick_interval_ms: int = 5
    gone_rounds: int = 20  # a fragment's node is killed in each
    gone_window: int = 20_000  # rows, that are read again
    gone_tick_interval_ms: int = 50
    brokers: int = 4
    readers: int = 64  # behind them, of overlapping ranges
    reader_rows: int = 100_000  # that are spread
    cosmos_queries: int = 10_000  # at four proxies
    only: tuple[str, ...] = NAMES  # of the pieces
    seed: int = 7

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in NAMES]
        if unknown:
            raise ValueError(f"there is no piece {unknown[0]}: there are {', '.join(NAMES)}")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            rows=500_000,
            batch=50_000,
            subscriptions=200,
            range_rows=200_000,
            range_ticks=3,
            events=10_000,
            ticks=5,
            warm=5,
            single_events=30,
            gone_rounds=2,
            reader_rows=20_000,
            cosmos_queries=80,
        )


Piece = tuple[list[dict[str, Any]], list[Goal]]


def _subscription(p: Parameters, folder: Path, progress: Progress) -> Piece:
    progress("a subscription over loopback")
    read = network_subscription.measure(folder, p.rows, p.batch, p.seed)
    _, subscription, mirror = read
    return read, [
        Goal("a subscription", subscription["rows/s"], 1e6, "rows/s"),
        Goal("a mirror", mirror["rows/s"], 1e6, "rows/s"),
    ]


def _join(p: Parameters, folder: Path, progress: Progress) -> Piece:
    progress("a join with an input at another node")
    join = network_join.measure(folder, p.events, p.ticks, p.warm, p.seed)
    rows = [{"reading": f"join: {where}", "CPU s a tick": s} for where, s in join.items()]
    ratio = join["two nodes"] / join["one node"]
    return rows, [Goal("CPU of a join, one input remote over both local", ratio, 1.3, "x", False)]


def _ranges(p: Parameters, folder: Path, progress: Progress) -> Piece:
    paid = []
    for count in (1, p.subscriptions):
        progress(f"{count:,} subscriptions")
        to = folder / str(count)
        paid.append(network_ranges.measure(to, count, p.range_rows, p.range_ticks, p.seed))
    rows = [
        {"reading": "1 subscription to all", "CPU s a tick": paid[0]},
        {"reading": f"{p.subscriptions:,} subscriptions", "CPU s a tick": paid[1]},
    ]
    name = f"publisher's CPU, {p.subscriptions:,} ranges over all in one"
    return rows, [Goal(name, paid[1] / paid[0], 2.0, "x", False)]


def _delays(p: Parameters, folder: Path, progress: Progress) -> Piece:
    progress("delays")
    delays = network_delay.measure(folder, p.single_events, p.tick_interval_ms)
    return [_delay(f"push to row, read {where}", found) for where, found in delays.items()], []


def _gone(p: Parameters, folder: Path, progress: Progress) -> Piece:
    progress("a fragment's node is gone")
    interval = p.gone_tick_interval_ms
    found = network_gone.measure(folder, p.gone_rounds, p.gone_window, interval)
    names = {
        "found": "a node is gone: kill to detection",
        "first row": "a node is gone: detection to the first new row",
        "replay": "a node is gone: its windows read again, by a new query",
    }
    bound = 2 * interval / 1e3 + percentile(found["replay"], 50)
    measured = percentile(found["first row"], 50)
    goal = Goal(
        "a node is gone: first row over two ticks and the replay", measured / bound, 1, "x", False
    )
    return [_delay(names[what], seconds) for what, seconds in found.items()], [goal]


def _brokers(p: Parameters, folder: Path, progress: Progress) -> Piece:
    progress(f"{p.readers} readers behind {p.brokers} brokers")
    found = network_brokers.measure(
        folder / "rows", p.brokers, p.readers, p.reader_rows, p.seed, p.tick_interval_ms
    )
    progress("a broker's hop")
    waits = network_brokers.delays(folder / "delay", p.single_events, p.tick_interval_ms)
    rows: list[dict[str, Any]] = [
        {
            "reading": f"rows from the home: {way}",
            "rows": s.sent,
            "of those wanted": s.sent / s.wanted,
        }
        for way, s in found.items()
    ]
    rows += [_delay(f"push to row, {where} the home", waits[key]) for key, where in _WAYS.items()]
    hop = 1e3 * (percentile(waits["behind"], 50) - percentile(waits["straight"], 50))
    own = found["brokers"]
    return rows, [
        Goal("rows that the home sends over those wanted", own.sent / own.wanted, 1.05, "x", False),
        Goal("a broker's hop at the median", hop, 20, "ms", False),
    ]


def _cosmos(p: Parameters, folder: Path, progress: Progress) -> Piece:
    found = {}
    for strategy in ("local", "cosmos"):
        progress(f"{p.cosmos_queries:,} queries at four proxies, {strategy}")
        to = folder / strategy
        found[strategy] = network_cosmos.measure(to, p.cosmos_queries, strategy, p.seed)
    rows: list[dict[str, Any]] = [
        {
            "reading": f"{d.queries:,} queries at four proxies: {strategy}",
            "deployed s": d.seconds,
            "CPU s": d.cpu_s,
            "sent kbit/s": d.sent_bps / 1e3,
            "foreseen kbit/s": "" if d.foreseen_bps is None else d.foreseen_bps / 1e3,
        }
        for strategy, d in found.items()
    ]
    cosmos = found["cosmos"]
    off = abs((cosmos.foreseen_bps or 0.0) / cosmos.sent_bps - 1)
    return rows, [
        Goal(f"{cosmos.queries:,} queries deployed", cosmos.seconds, 120, "s", False),
        Goal("the planner's traffic, off what is measured by", 100 * off, 25, "%", False),
    ]


_WAYS = {"straight": "straight from", "behind": "by way of a broker from"}

_MEASURES = (_subscription, _join, _ranges, _gone, _delays, _brokers, _cosmos)
PIECES: dict[str, Callable[[Parameters, Path, Progress], Piece]] = dict(
    zip(NAMES, _MEASURES, strict=True)
)


def run(parameters: Parameters, progress: Progress) -> Report:
    rows: list[dict[str, Any]] = []
    goals: list[Goal] = []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary:
        for name in parameters.only:
            more, reached = PIECES[name](parameters, Path(temporary) / name, progress)
            rows += more
            goals += reached
    return Report("network", "Nodes beside one", asdict(parameters), rows, goals)


def _delay(what: str, seconds: list[float]) -> dict[str, Any]:
    return {
        "reading": what,
        "median ms": 1e3 * percentile(seconds, 50),
        "p95 ms": 1e3 * percentile(seconds, 95),
    }
