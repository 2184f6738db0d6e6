"""Nodes beside one: what it costs, and how long it takes, that rows are wanted elsewhere.

Nodes are processes on this machine, with engines inside them; what passes between them goes over
loopback. CPU seconds are those of the processes, which others on the machine hardly change.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import network_delay, network_join, network_ranges, network_subscription
from bench.measure import percentile
from thalweg.experiments.report import Goal, Progress, Report


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
    seed: int = 7

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
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary:
        folder = Path(temporary)
        progress("a subscription over loopback")
        read = network_subscription.measure(folder / "read", p.rows, p.batch, p.seed)
        progress("a join with an input at another node")
        join = network_join.measure(folder / "join", p.events, p.ticks, p.warm, p.seed)
        paid = []
        for count in (1, p.subscriptions):
            progress(f"{count:,} subscriptions")
            to = folder / f"{count}-ranges"
            paid.append(network_ranges.measure(to, count, p.range_rows, p.range_ticks, p.seed))
        progress("delays")
        delays = network_delay.measure(folder / "delay", p.single_events, p.tick_interval_ms)
    rows: list[dict[str, Any]] = [
        *read,
        *({"reading": f"join: {where}", "CPU s a tick": s} for where, s in join.items()),
        {"reading": "1 subscription to all", "CPU s a tick": paid[0]},
        {"reading": f"{p.subscriptions:,} subscriptions", "CPU s a tick": paid[1]},
        *(_delay(where, found) for where, found in delays.items()),
    ]
    _, subscription, mirror = read
    ratio = join["two nodes"] / join["one node"]
    ranges = f"publisher's CPU, {p.subscriptions:,} ranges over all in one"
    goals = [
        Goal("a subscription", subscription["rows/s"], 1e6, "rows/s"),
        Goal("a mirror", mirror["rows/s"], 1e6, "rows/s"),
        Goal("CPU of a join, one input remote over both local", ratio, 1.3, "x", False),
        Goal(ranges, paid[1] / paid[0], 2.0, "x", False),
    ]
    return Report("network", "Nodes beside one", asdict(p), rows, goals)


def _delay(where: str, seconds: list[float]) -> dict[str, Any]:
    return {
        "reading": f"push to row, read {where}",
        "median ms": 1e3 * percentile(seconds, 50),
        "p95 ms": 1e3 * percentile(seconds, 95),
    }
