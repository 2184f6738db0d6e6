"""Readers of overlapping ranges behind brokers: how often the home sends a row, what a hop adds.

Beside each broker a node has its share of the readers, each a query with a range of its own. The
home's links are those to the brokers. What is sent over a link is what came in at its other end,
beside what anybody behind it wants. *Unicast* is what the home would send to each reader by itself,
*flooding* all rows to each broker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from random import Random

import polars as pl

from bench.network_delay import Follower
from bench.nodes import NodeProcess, await_, started
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS

KEYS = 1_000
# `n` tells rows apart: equal ones at instants that follow each other would be one to ISTREAM.
SCHEMA = "CREATE STREAM S (k BIGINT, n BIGINT) TIMESTAMP BY ts BIGINT"


@dataclass(frozen=True, slots=True)
class Shares:
    """Rows that leave the home, of one way to spread them."""

    sent: int
    wanted: int  # by anybody at or below the other ends of its links, once a link


def ranges(readers: int, seed: int) -> list[tuple[int, int]]:
    """Of a fifth of the keys at most, anywhere."""
    random = Random(seed)
    found = []
    for _ in range(readers):
        width = random.randint(KEYS // 50, KEYS // 5)
        low = random.randint(0, KEYS - width)
        found.append((low, low + width))
    return found


def measure(
    folder: Path, brokers: int, readers: int, rows: int, seed: int, tick_interval_ms: int
) -> dict[str, Shares]:
    sites = [f"s{i + 1}" for i in range(brokers)]
    wanted = [Wanted("home", "s0", IN_PROCESS, trees="nearest")]
    wanted += [Wanted(f"b{s}", s, engine="none", trees="nearest") for s in sites]
    wanted += [Wanted(f"r{s}", s, IN_PROCESS, trees="nearest") for s in sites]
    chosen = ranges(readers, seed)
    with started(folder, wanted, tick_interval_ms) as nodes:
        by_name = {n.name: n for n in nodes}
        home = by_name["home"]
        home.cql(SCHEMA)
        of = {site: chosen[i::brokers] for i, site in enumerate(sites)}
        for site, own in of.items():
            _submit(by_name[f"r{site}"], site, own)
        tree = {f"r{s}": f"b{s}" for s in sites} | {f"b{s}": "home" for s in sites}
        pushed = until_hung(home, tree)
        before = {s: arrived(by_name[f"b{s}"]) for s in sites}
        keys = _push(home, pushed, rows, seed)
        last = pushed + rows
        for site in sites:
            reader = by_name[f"r{site}"]
            for i in range(len(of[site])):
                query = f"q{site}_{i}"
                await_(lambda r=reader, q=query: r.frontier(q) >= last, "all rows")  # type: ignore[misc]
        sent = sum(arrived(by_name[f"b{s}"]) - before[s] for s in sites)
        said = {s: _said(by_name[f"r{s}"], s, len(of[s]), pushed) for s in sites}
    held = [_any(keys, own) for own in of.values()]
    each = [_any(keys, [one]) for one in chosen]
    assert sum(map(sum, said.values())) == sum(each), "a row came twice, or not at all"
    return {
        "brokers": Shares(sent, sum(held)),
        "unicast": Shares(sum(each), sum(held)),
        "flooding": Shares(rows * brokers, sum(held)),
    }


def delays(folder: Path, events: int, tick_interval_ms: int) -> dict[str, list[float]]:
    """Seconds of every event, straight from the home and by way of a broker; of the same pushes."""
    wanted = [
        Wanted("home", "s0", IN_PROCESS, trees="nearest"),
        Wanted("b", "s1", engine="none", trees="nearest"),
        Wanted("behind", "s1", IN_PROCESS, trees="nearest"),
        Wanted("straight", "s0", IN_PROCESS, trees="nearest"),
    ]
    with started(folder, wanted, tick_interval_ms) as nodes:
        home, _, behind, straight = nodes
        home.cql(SCHEMA)
        for node in (behind, straight):
            submitted(node, f"CREATE QUERY {node.name} AS SELECT ISTREAM k FROM S [Now]")
        first = until_hung(home, {"behind": "b", "straight": "home"})
        followers = [Follower(behind, "behind"), Follower(straight, "straight")]
        pushed: list[float] = []
        for number in range(first, first + events):
            pushed.append(time.perf_counter())
            home.push("S", pl.DataFrame({"ts": [number], "k": [number], "n": [number]}))
            home.heartbeat("S", number + 1)
            await_(lambda n=number: all(n in f.seen for f in followers), "a row", 0.001)  # type: ignore[misc]
        return {f.query: [f.seen[first + i] - at for i, at in enumerate(pushed)] for f in followers}


def _submit(node: NodeProcess, site: str, own: list[tuple[int, int]]) -> None:
    for i, (low, high) in enumerate(own):
        wanted = f"SELECT ISTREAM k, n FROM S [Now] WHERE k >= {low} AND k < {high}"
        submitted(node, f"CREATE QUERY q{site}_{i} AS {wanted}")


def submitted(node: NodeProcess, text: str) -> None:
    """News of the stream takes a moment to reach all nodes."""

    def is_done() -> bool:
        try:
            node.cql(text)
        except RuntimeError as error:
            if "there is no stream" not in str(error):
                raise
            return False
        return True

    await_(is_done, "the stream", 0.2)


def until_hung(home: NodeProcess, parents: dict[str, str]) -> int:
    """Rows make mirrors go over; the instants that this has taken."""
    at = 0

    def hang() -> bool:
        nonlocal at
        home.push("S", pl.DataFrame({"ts": [at], "k": [-1], "n": [at]}))
        home.heartbeat("S", at + 1)
        at += 1
        found = {m["node"]: m["parent"] for t in home.get("/network/trees") for m in t["members"]}
        return all(found.get(node) == parent for node, parent in parents.items())

    await_(hang, "the tree", 0.5)
    for _ in range(3):  # and the old ways are given back
        time.sleep(1)
        hang()
    return at


def _push(home: NodeProcess, since: int, rows: int, seed: int) -> pl.Series:
    random = Random(seed + 1)
    keys = pl.Series("k", [random.randrange(KEYS) for _ in range(rows)])
    times = pl.Series(range(since, since + rows))
    home.push("S", pl.DataFrame({"ts": times, "k": keys, "n": times}))
    home.heartbeat("S", since + rows)
    return keys


def arrived(node: NodeProcess) -> int:
    links = node.get("/network/links", headers={HERE: "1"})
    return sum(link["arrived"] for link in links)


def _said(node: NodeProcess, site: str, queries: int, since: int) -> list[int]:
    counts, asked = [], {"format": "json", "limit": 100_000}
    for i in range(queries):
        told = node.get(f"/queries/q{site}_{i}/results", params=asked)
        counts.append(sum(int(row["ts"]) >= since for row in told["rows"]))
    return counts


def _any(keys: pl.Series, own: list[tuple[int, int]]) -> int:
    """Rows that one of these ranges has."""
    inside = [keys.is_between(low, high, closed="left") for low, high in own]
    return int(reduce(or_, inside).sum())
