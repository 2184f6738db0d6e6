"""Many queries at four proxies over four sites: how long `cosmos` takes to deploy them, and what
nodes send each other then, beside `local` and beside what its planner foresees.

Each site has a node, which is the home of a stream. Users of a site mostly want the same ranges of
another site's stream. Streams flow on all the time, since planners go by the rates of the last
minute; the traffic is what nodes say they have sent, while rows come at the same rate.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import polars as pl

from bench.nodes import NodeProcess, network
from thalweg.api.network.forwarding import HERE
from thalweg.api.network.options import STRATEGY
from thalweg.cli.network.running import meet

SITES = 4
KEYS = 1_000
ROWS_A_S = 200  # of each stream
RANGES = 20  # that a site's users like
A_SCRIPT = 250  # queries
RATES_S = 12.0  # until planners have seen how streams flow
MEASURED_S = 20.0
LONGEST_S = 3_600.0  # for a script


@dataclass(frozen=True, slots=True)
class Deployed:
    seconds: float
    queries: int
    cpu_s: float  # of all nodes, for the deployment
    sent_bps: float  # by all nodes, to others
    foreseen_bps: float | None  # by the planner that was asked last; None: nobody plans


def measure(folder: Path, queries: int, strategy: str, seed: int) -> Deployed:
    with network(folder, SITES) as nodes:
        meet([n.running for n in nodes])
        for number, node in enumerate(nodes):
            node.cql(f"CREATE STREAM S{number} (k BIGINT, v DOUBLE) TIMESTAMP BY ts BIGINT")
        flow = Flow(nodes)
        try:
            time.sleep(RATES_S)
            cpu, began = sum(n.cpu_s for n in nodes), time.monotonic()
            scripts = [_scripts(place, queries // SITES, seed) for place in range(SITES)]
            with ThreadPoolExecutor(SITES) as proxies:
                list(proxies.map(_submit, nodes, scripts, [strategy] * SITES))
            stand = sum(_standing(node) for node in nodes)
            seconds, cpu = time.monotonic() - began, sum(n.cpu_s for n in nodes) - cpu
            assert stand == queries // SITES * SITES, f"{stand} queries stand"
            foreseen = None if strategy == "local" else _foreseen(nodes[0], strategy)
            sent = _sent_bps(nodes)
        finally:
            flow.stop()
    return Deployed(seconds, stand, cpu, sent, foreseen)


def _scripts(place: int, count: int, seed: int) -> list[str]:
    """What a site's users want: two thirds of it of the next site's stream."""
    random = Random(seed * SITES + place)
    liked = [random.randrange(KEYS - 100) for _ in range(RANGES)]
    texts = []
    for number in range(count):
        is_usual = random.random() < 2 / 3
        stream = (place + 1) % SITES if is_usual else random.randrange(SITES)
        low = random.choice(liked)
        high = low + random.randrange(20, 100)
        texts.append(
            f"CREATE QUERY q{place}_{number} AS SELECT ISTREAM k, v FROM S{stream} [Now] "
            f"WHERE k >= {low} AND k < {high};"
        )
    return ["\n".join(texts[i : i + A_SCRIPT]) for i in range(0, count, A_SCRIPT)]


def _submit(node: NodeProcess, scripts: list[str], strategy: str) -> None:
    for script in scripts:
        node.cql(script, {STRATEGY: strategy}, timeout_s=LONGEST_S)


def _standing(node: NodeProcess) -> int:
    """Queries of users."""
    found = node.get("/queries", headers={HERE: "1"})
    return sum(q["name"].startswith("q") for q in found)


def _foreseen(node: NodeProcess, strategy: str) -> float:
    """What nodes would send each other, by what is planned for all that stands."""
    one_more = "CREATE QUERY more AS SELECT ISTREAM k, v FROM S0 [Now] WHERE k < 0"
    told = node.ask("/network/plan", {"cql": one_more}, {STRATEGY: strategy})
    return float(told["traffic_bps"])


def _sent_bps(nodes: list[NodeProcess]) -> float:
    for node in nodes:
        node.get("/network/load", headers={HERE: "1"})
    time.sleep(MEASURED_S)
    return sum(n.get("/network/load", headers={HERE: "1"})["out_bps"] for n in nodes)


class Flow:
    """Rows at a steady rate, into each stream at its home."""

    def __init__(self, nodes: list[NodeProcess]) -> None:
        self._over, self._errors = threading.Event(), list[Exception]()
        self._threads = [
            threading.Thread(target=self._run, args=(node, f"S{number}"), daemon=True)
            for number, node in enumerate(nodes)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self, node: NodeProcess, stream: str) -> None:
        try:
            self._push(node, stream)
        except Exception as error:
            self._errors.append(error)

    def _push(self, node: NodeProcess, stream: str) -> None:
        random, began, sent = Random(stream), time.monotonic(), 0
        while not self._over.wait(0.1):
            due = int((time.monotonic() - began) * ROWS_A_S) - sent
            if due:
                keys = [random.randrange(KEYS) for _ in range(due)]
                values = [random.random() for _ in range(due)]
                instants = range(sent, sent + due)
                node.push(stream, pl.DataFrame({"ts": instants, "k": keys, "v": values}))
                sent += due
