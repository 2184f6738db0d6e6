"""Joins among peers, beside one node that does it all: events a second, messages, delays.

Peers are processes on this machine, so that all of them together have no more processors than the
one node has: what is measured is the price of peers, not what many machines would gain. A join of
type 1 and one of type 2 stand while sources at all nodes push; the one node, a site without a
network of peers, gets the same rows. Messages are those of all protocols, less what the same nodes
send in the same time when nothing is pushed.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from bench.measure import percentile
from bench.network_delay import Follower
from bench.nodes import NodeProcess, await_, network
from thalweg.experiments.report import Goal, Progress, Report

STREAMS = """
CREATE STREAM X (k BIGINT, a BIGINT, b BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM Y (a BIGINT, b BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM Z (b BIGINT) TIMESTAMP BY ts BIGINT"""
TYPE_1 = "SELECT X.k FROM X [Range {w}], Y [Range {w}] WHERE X.a = Y.a"
TYPE_2 = "SELECT X.k FROM X [Range {w}], Y [Range {w}], Z [Range {w}] WHERE X.a = Y.a AND Y.b = Z.b"


@dataclass(frozen=True)
class Parameters:
    nodes: tuple[int, ...] = (8, 16)
    rounds: int = 20  # of pushes, as fast as they are taken
    batch: int = 100  # tuples of a source in a round
    paced_s: float = 20.0
    pause_s: float = 0.5  # between two pushes of a source, while delays are measured
    window: int = 2_000  # instants
    instants: int = 1_000  # a round
    domain: int = 2_000  # values of each join column
    copies: int = 1
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=(4,), rounds=5, batch=40, paced_s=6.0)


class Load:
    """Sources at nodes: each node is one of one stream, in turn; one node is one of all."""

    def __init__(self, p: Parameters, nodes: list[NodeProcess], sources: int) -> None:
        self.p, self.nodes = p, nodes
        self.sources = [(nodes[i % len(nodes)], "XYZ"[i % 3], i) for i in range(sources)]
        self.now = 0
        self.pushed = 0
        self.sent_at: dict[int, float] = {}

    def rows(self, source: int, stream: str, count: int) -> pl.DataFrame:
        rng = random.Random(f"{self.p.seed}/{source}/{self.now}")
        high = self.now + self.p.instants
        stamps = sorted(rng.randrange(self.now, high) for _ in range(count))
        found: dict[str, list[int]] = {"ts": stamps}
        if stream == "X":
            first = (source << 40) + (self.now << 10)
            found["k"] = [first + i for i in range(count)]
        if stream in "XY":
            found["a"] = [rng.randrange(self.p.domain) for _ in stamps]
        found["b"] = [rng.randrange(self.p.domain) for _ in stamps]
        return pl.DataFrame(found)

    def round(self, count: int) -> None:
        """All sources at once, then the next instants."""

        def push(node: NodeProcess, stream: str, source: int) -> None:
            rows = self.rows(source, stream, count)
            sent = time.perf_counter()
            if stream == "X":
                self.sent_at |= dict.fromkeys(rows["k"], sent)
            node.push(stream, rows, partition=source)

        threads = [threading.Thread(target=push, args=s) for s in self.sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.now += self.p.instants
        self.pushed += count * len(self.sources)

    def promise(self, at: int) -> None:
        for node, stream, source in self.sources:
            node.heartbeat(stream, at, partition=source)


def measure(p: Parameters, folder: Path, count: int, sources: int) -> dict[str, Any]:
    are_peers = count > 1
    options = ("--mode", "p2p", "--copies", str(p.copies)) if are_peers else ()
    with network(folder, count, 20, options) as nodes:
        nodes[0].cql(STREAMS)
        asker = nodes[-1]
        await_(lambda: len(asker.get("/streams")) == 3, "news of the streams")
        for name, text in (("one", TYPE_1), ("two", TYPE_2)):
            asker.cql(f"CREATE QUERY {name} AS {text.format(w=p.window)}")
        load = Load(p, nodes, sources)
        load.promise(0)  # all are sources before time goes on
        load.round(1)
        follower = Follower(asker, "one")
        found: dict[str, Any] = {"system": f"{count} peers" if are_peers else "one node"}
        found |= _throughput(p, nodes, load, asker)
        found |= _delays(p, load, follower)
        if are_peers:
            found |= _traffic(p, nodes, load)
    return found


def _throughput(
    p: Parameters, nodes: list[NodeProcess], load: Load, asker: NodeProcess
) -> dict[str, Any]:
    """From the first push until all of it is final."""
    before, cpu_s, begun = load.pushed, sum(n.cpu_s for n in nodes), time.perf_counter()
    for _ in range(p.rounds):
        load.round(p.batch)
    load.promise(load.now)
    await_(lambda: all(asker.frontier(q) >= load.now - 1 for q in ("one", "two")), "results")
    events, seconds = load.pushed - before, time.perf_counter() - begun
    spent = sum(n.cpu_s for n in nodes) - cpu_s
    rows = sum(asker.get(f"/queries/{q}")["rows"] for q in ("one", "two"))
    return {"events/s": events / seconds, "CPU ms an event": 1e3 * spent / events, "rows": rows}


def _delays(p: Parameters, load: Load, follower: Follower) -> dict[str, Any]:
    """From the push of an X to its row, at a calm pace: a row is final when all sources have gone
    on, so that the pause between two pushes is a part of it."""
    until = time.perf_counter() + p.paced_s
    known = set(follower.seen)
    load.sent_at.clear()
    while time.perf_counter() < until:
        load.round(10)
        time.sleep(p.pause_s)
    load.promise(load.now)
    time.sleep(3.0)
    found = [
        1e3 * (seen - load.sent_at[k])
        for k, seen in follower.seen.items()
        if k not in known and k in load.sent_at
    ]
    if not found:
        return {}
    return {"median ms": percentile(found, 50), "95 % ms": percentile(found, 95)}


def _traffic(p: Parameters, nodes: list[NodeProcess], load: Load) -> dict[str, Any]:
    """Of pushes at a calm pace, less that of silence."""
    before = load.pushed
    busy = _sent(nodes, lambda: _paced(p, load))
    events = load.pushed - before
    quiet = _sent(nodes, lambda: time.sleep(p.paced_s / 2))
    messages, size = (max(0.0, b - q) for b, q in zip(busy, quiet, strict=True))
    per_s = events / (p.paced_s / 2)
    return {
        "messages a tuple": messages / per_s,
        "bytes a tuple": size / per_s,
        "messages/s in silence": quiet[0],
    }


def _paced(p: Parameters, load: Load) -> None:
    until = time.perf_counter() + p.paced_s / 2
    while time.perf_counter() < until:
        load.round(10)
        time.sleep(p.pause_s)


def _sent(nodes: list[NodeProcess], act: Any) -> tuple[float, float]:
    """Messages and bytes a second of all nodes."""

    def total() -> tuple[int, int]:
        told = [n.get("/network/role", headers={"thalweg-here": "1"})["traffic"] for n in nodes]
        return sum(t.get("sent", 0) for t in told), sum(t.get("bytes sent", 0) for t in told)

    first, begun = total(), time.perf_counter()
    act()
    last, seconds = total(), time.perf_counter() - begun
    return (last[0] - first[0]) / seconds, (last[1] - first[1]) / seconds


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary:
        for count in p.nodes:
            # The one node has as many partitions as there are sources: the same work.
            for size in (1, count):
                progress(f"{size} node{'s' * (size > 1)}, {count} sources")
                folder = Path(temporary) / f"{count}-{size}"
                found = measure(p, folder, size, count)
                rows.append({"sources": count, **found})
    goals = []
    for alone, peers in zip(rows[::2], rows[1::2], strict=True):
        name = peers["system"]
        off = abs(peers["rows"] - alone["rows"])
        goals.append(Goal(f"{name}: rows more or fewer than one node's", off, 0, at_least=False))
        added_s = (peers["median ms"] - alone["median ms"]) / 1e3
        goals.append(Goal(f"{name}: added delay, median", added_s, 2.0, "s", at_least=False))
    return Report("p2p", "Peers beside one node", asdict(p), rows, goals)
