"""A stream for fifteen readers: along a tree, beside unicast from its home; and with tolerances.

All nodes are processes on this machine, so that together they have no more processors than the home
alone: what is measured is what each way costs, not what many machines would gain. In the tree a
stream comes into each site once, and nodes of a site have it from each other. An *edge* is a node
that has the stream from another one; an *update* is a row.

With tolerances the values are random walks by key; what came in at a reader is laid beside what was
due for its class.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from bench.network_brokers import arrived, submitted, until_hung
from bench.nodes import NodeProcess, await_, started
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS
from thalweg.experiments.report import Goal, Progress, Report

STREAM = "CREATE STREAM S (k BIGINT, n BIGINT) TIMESTAMP BY ts BIGINT"
_ROW_BYTES = 8 * (3 + 2)  # three columns, instant and position
_LABEL_BYTES = 8 + 1  # where a text begins, and the number of one class
_PERCENTS = (0.0, 0.1, 1.0)


@dataclass(frozen=True)
class Parameters:
    nodes: int = 16
    sites: int = 3
    rows: int = 200_000
    push: int = 2_000  # rows of a push
    keys: int = 100
    tolerated: int = 20_000  # rows of each stream with a tolerance
    step_percent: float = 0.2  # by which a value changes, at most
    tick_interval_ms: int = 20
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=5, sites=2, rows=20_000, tolerated=4_000)


def run(p: Parameters, progress: Progress) -> Report:
    found = []
    for place, way in enumerate(("unicast", "tree")):
        progress(f"{way}, {p.nodes} nodes", place / 3)
        with tempfile.TemporaryDirectory() as folder:
            found.append(_spread(p, Path(folder), way))
    progress("tolerances", 2 / 3)
    with tempfile.TemporaryDirectory() as folder:
        found += _tolerances(p, Path(folder))
    unicast, tree, *tolerant = found
    goals = [
        Goal(
            "updates/s of the tree, beside unicast",
            tree["updates/s"] / unicast["updates/s"],
            1.0,
        ),
        Goal(
            "the home's CPU for an update, beside unicast",
            tree["home µs/update"] / unicast["home µs/update"],
            0.5,
            at_least=False,
        ),
        *(
            Goal(
                f"{t['way']}: rows that came, by rows that were due",
                t["came / due"],
                1.05,
                at_least=False,
            )
            for t in tolerant
        ),
    ]
    return Report("trees", "A tree beside unicast", asdict(p), found, goals)


# --- a tree beside unicast


def _nodes(p: Parameters, trees: str | None) -> tuple[list[Wanted], dict[str, list[str]]]:
    sites: dict[str, list[str]] = {f"s{i + 1}": [] for i in range(p.sites)}
    for number in range(p.nodes - 1):
        sites[f"s{number % p.sites + 1}"].append(f"r{number + 1}")
    wanted = [Wanted("home", "s0", IN_PROCESS, trees=trees)]
    wanted += [Wanted(r, s, IN_PROCESS, trees=trees) for s, own in sites.items() for r in own]
    return wanted, sites


def _spread(p: Parameters, folder: Path, way: str) -> dict[str, Any]:
    trees = "nearest" if way == "tree" else None
    wanted, sites = _nodes(p, trees)
    with started(folder, wanted, p.tick_interval_ms) as nodes:
        home, readers = nodes[0], nodes[1:]
        home.cql(STREAM)
        for reader in readers:
            submitted(reader, f"CREATE QUERY q{reader.name} AS SELECT ISTREAM k, n FROM S [Now]")
        first = _hung(home, sites) if way == "tree" else 0
        edges_of_home = len(sites) if way == "tree" else len(readers)
        before = {n.name: n.cpu_s for n in nodes}
        began = time.perf_counter()
        random = Random(p.seed)
        for low in range(first, first + p.rows, p.push):
            times = range(low, min(low + p.push, first + p.rows))
            keys = [random.randrange(p.keys) for _ in times]
            home.push("S", pl.DataFrame({"ts": times, "k": keys, "n": times}))
        last = first + p.rows
        home.heartbeat("S", last)
        for reader in readers:
            await_(lambda r=reader: r.frontier(f"q{r.name}") >= last, "all rows")  # type: ignore[misc]
        took = time.perf_counter() - began
        cpu = {n.name: n.cpu_s - before[n.name] for n in nodes}
        came = [arrived(r) for r in readers]
    assert all(c >= p.rows for c in came), "a reader lacks rows"
    return {
        "way": way,
        "readers": len(readers),
        "edges of the home": edges_of_home,
        "updates/s": p.rows / took,
        "home µs/update": 1e6 * cpu["home"] / p.rows,
        "home µs/update and edge": 1e6 * cpu["home"] / p.rows / edges_of_home,
        "all µs/update and edge": 1e6 * sum(cpu.values()) / p.rows / len(readers),
    }


def _hung(home: NodeProcess, sites: dict[str, list[str]]) -> int:
    """Until each site has the stream from the home once; gives the instants that this took."""
    at = until_hung(home, {})
    of = {r: s for s, own in sites.items() for r in own}

    def is_so() -> bool:
        nonlocal at
        home.push("S", pl.DataFrame({"ts": [at], "k": [-1], "n": [at]}))
        home.heartbeat("S", at + 1)
        at += 1
        found = {m["node"]: m["parent"] for t in home.get("/network/trees") for m in t["members"]}
        from_home = [of[n] for n, parent in found.items() if parent == "home"]
        return len(found) == len(of) and sorted(from_home) == sorted(sites)

    await_(is_so, "the tree", 0.5)
    return at


# --- tolerances


def _tolerances(p: Parameters, folder: Path) -> list[dict[str, Any]]:
    """All readers have the same tolerance; what an edge carries is due at its end."""
    wanted, _ = _nodes(p, "nearest")
    found = []
    with started(folder, wanted, p.tick_interval_ms) as nodes:
        home, readers = nodes[0], nodes[1:]
        for number, percent in enumerate(_PERCENTS):
            stream, edges = f"P{number}", len(readers)
            home.cql(
                f"CREATE STREAM {stream} (k BIGINT, v DOUBLE, n BIGINT) TIMESTAMP BY ts BIGINT"
            )
            for reader in readers:
                submitted(
                    reader,
                    f"CREATE QUERY q{number}{reader.name} AS SELECT ISTREAM k, v, n "
                    f"FROM {stream} [Now] TOLERANCE v {percent} PERCENT PER k",
                )
            for rows in _walks(p).iter_slices(p.push):
                home.push(stream, rows)
            home.heartbeat(stream, p.tolerated)
            came = due = 0
            for reader in readers:
                name = f"q{number}{reader.name}"
                await_(lambda r=reader, q=name: r.frontier(q) >= p.tolerated, "all rows")  # type: ignore[misc]
                came += _came(reader, stream)
                asked = {"format": "json", "limit": 100_000}
                due += len(reader.get(f"/queries/{name}/results", params=asked)["rows"])
            bytes_ = came * (_ROW_BYTES + _LABEL_BYTES)
            found.append(
                {
                    "way": f"tolerance {percent:g} %",
                    "readers": edges,
                    "rows": p.tolerated,
                    "due, a reader": due / edges,
                    "came, a reader": came / edges,
                    "came / due": came / max(1, due),
                    "rows saved": 1 - came / edges / p.tolerated,
                    "bytes of rows, an edge": bytes_ / edges,
                    "bytes saved": 1 - bytes_ / edges / (p.tolerated * _ROW_BYTES),
                }
            )
    return found


def _walks(p: Parameters) -> pl.DataFrame:
    random = Random(p.seed)
    values = [100.0] * p.keys
    rows = []
    for ts in range(p.tolerated):
        k = random.randrange(p.keys)
        values[k] *= 1 + random.uniform(-p.step_percent, p.step_percent) / 100
        rows.append((ts, k, values[k], ts))
    return pl.DataFrame(rows, schema=["ts", "k", "v", "n"], orient="row")


def _came(node: NodeProcess, stream: str) -> int:
    links = node.get("/network/links", headers={HERE: "1"})
    return sum(int(k["arrived"]) for k in links if k["stream"] in (stream, f"due/{stream}"))
