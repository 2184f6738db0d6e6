"""Nodes as processes are killed (`kill -9`) while a fragment moves: the result is the reference's.

A few of them run here; `THALWEG_FAULTS=1` (`make soak`) kills each role at each moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.plan.nodes import Aggregate, Join

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

STREAMS = (
    "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT"
)
QUERY = (
    "CREATE QUERY sales AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS top "
    "FROM Bids [Partition By item Rows 5] B, Sold [Unbounded] S WHERE B.item = S.item "
    "GROUP BY S.item"
)
# By PTLB goes what is linear, over windows that end.
LINEAR = (
    "CREATE QUERY sales AS SELECT S.item, B.price FROM Bids [Range 40] B, "
    "Sold [Range 25 Slide 5] S WHERE B.item = S.item"
)
# Streams are at n1, the fragment goes from n2 to n4, and n3 reads it. n1 is who asked, too.
ROLES = {"home and asker": "n1", "sender": "n2", "reader": "n3", "receiver": "n4"}
MOMENTS_S = (0.0, 0.1, 0.3, 0.6, 1.0)
WAYS = ("precopy", "mslb", "ptlb", "stop")
EVERY = "THALWEG_FAULTS" in os.environ
FEW = (("receiver", 0.3, "precopy"),)
CELLS = list(product(ROLES, MOMENTS_S, WAYS)) if EVERY else list(FEW)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with Network(tmp_path, 4, "--gone-after-s", "600") as made:
        yield made


def bids(upto: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 3, "price": t * 7 % 31} for t in range(1, upto)]


def sold(upto: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 4} for t in range(1, upto)]


def expected(upto: int, text: str = QUERY) -> list[tuple[Any, ...]]:
    (query,) = compile_script(f"{STREAMS}; {text}").queries
    inputs = {
        name: [
            Arrival(0, row["ts"], place, tuple(v for k, v in row.items() if k != "ts"))
            for place, row in enumerate(rows)
        ]
        for name, rows in (("Bids", bids(upto)), ("Sold", sold(upto)))
    }
    found = reference.evaluate(query.plan, inputs)
    return sorted((c.ts, c.op, c.row) for c in found if c.ts < upto - 1)


@pytest.mark.parametrize(("role", "moment_s", "way"), CELLS)
def test_whoever_is_killed_in_the_middle_of_a_move_no_row_shows_it(
    network: Network, role: str, moment_s: float, way: str
) -> None:
    text = begin(network, way)
    time.sleep(moment_s)
    network.kill(ROLES[role])
    if role != "home and asker":
        push(network, 120, 180)
    network.begin(ROLES[role])
    push(network, 120, 180)
    eventually(lambda: is_over(network), 120)
    push(network, 180, 240)
    eventually(lambda: network.final("sales", "n3") >= 238, 120)
    # Whether the move was given up or not: it runs at one node.
    eventually(lambda: len(network.fragments("n2") + network.fragments("n4")) == 1, 120)
    assert sorted(network.said("sales", "n3")) == expected(240, text)


@pytest.mark.skipif(not EVERY, reason="make soak")
@pytest.mark.parametrize("gone", ["sender", "receiver"])
def test_by_ptlb_either_node_may_be_gone_for_good_while_both_compute(
    network: Network, gone: str
) -> None:
    text = begin(network, "ptlb")
    eventually(lambda: is_over(network), 120)
    push(network, 120, 140)
    eventually(lambda: network.final("sales", "n3") >= 138, 120)
    assert len(network.fragments("n2")) == len(network.fragments("n4")) == 1
    network.kill(ROLES[gone])
    away = {"node": ROLES[gone]}  # who is forgotten has to be silent for a while
    eventually(lambda: network.ask("n1", "POST", "/network/forget", json=away).is_success, 120)
    push(network, 140, 240)
    eventually(lambda: network.final("sales", "n3") >= 238, 120)
    assert sorted(network.said("sales", "n3")) == expected(240, text)


@pytest.mark.skipif(not EVERY, reason="make soak")
@pytest.mark.parametrize("reader_is_killed", [False, True])
def test_what_nobody_could_rebuild_outlives_its_node_by_a_copy(
    tmp_path: Path, reader_is_killed: bool
) -> None:
    options = ("--gone-after-s", "600", "--copy-every-s", "0.5")
    with Network(tmp_path, 3, *options) as network:
        network.cql("n1", STREAMS)
        network.place("n3", STREAMS, QUERY, {Aggregate: "n2"})
        push(network, 1, 120)
        eventually(lambda: network.final("sales", "n3") >= 118)
        placed = "/queries/sales/placed"
        eventually(lambda: "checkpointed" in network.ask("n3", "GET", placed).text, 120)
        push(network, 120, 160)
        network.kill("n2")
        if reader_is_killed:
            network.kill("n3")
            network.begin("n3")
        push(network, 160, 200)
        away = {"node": "n2"}
        eventually(lambda: network.ask("n1", "POST", "/network/forget", json=away).is_success, 120)
        push(network, 200, 240)
        eventually(lambda: network.final("sales", "n3") >= 238, 120)
        assert sorted(network.said("sales", "n3")) == expected(240)
        assert len(network.fragments("n3")) == 1


def begin(network: Network, way: str) -> str:
    """A move from n2 to n4; of which query."""
    text, kind = (LINEAR, Join) if way == "ptlb" else (QUERY, Aggregate)
    network.cql("n1", STREAMS)
    network.place("n3", STREAMS, text, {kind: "n2"})
    push(network, 1, 120)
    eventually(lambda: network.final("sales", "n3") >= 118)
    (publication,) = network.fragments("n2")
    asked = {"what": publication, "to": "n4", "by": way}
    patiently(lambda: network.ask("n1", "POST", "/network/moves", json=asked))
    return text


def push(network: Network, first: int, upto: int) -> None:
    for stream, rows in (("Bids", bids(upto)), ("Sold", sold(upto))):
        new = [r for r in rows if r["ts"] >= first]
        network.push(["n1"], stream, new, f"{stream}-{first}")


def is_over(network: Network) -> bool:
    told = patiently(lambda: network.ask("n1", "GET", "/network/moves")).json()
    return bool(told) and all(m["is_over"] for m in told)
