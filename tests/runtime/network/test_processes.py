"""Nodes as processes: killed, paused and started again, and the result is the reference's."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.network.processes import Network, patiently

from thalweg.cli.network.running import stop
from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival

STREAMS = {
    "n1": "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT",
    "n2": "CREATE STREAM Sold (item BIGINT, buyer VARCHAR) TIMESTAMP BY ts BIGINT",
}
# A query in pieces reads streams of other nodes, too; as a whole it runs in `make soak`.
STRATEGIES = ("local", "edge") if "THALWEG_NETWORKS" in os.environ else ("edge",)
QUERY = (
    "CREATE QUERY sales AS SELECT B.item, COUNT(*) AS n, MAX(B.price) AS top, MIN(S.buyer) AS who "
    "FROM Bids [Range 40] B, Sold [Range 10] S WHERE B.item = S.item GROUP BY B.item"
)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path)
    yield made
    for name in made.nodes:
        made.go_on(name)
    assert stop(list(made.nodes.values())) == []


def drawn(seed: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """Batches of both streams, in order of time."""
    random_ = random.Random(seed)
    batches = []
    for step in range(24):
        ts = sorted(random_.randrange(step * 5, step * 5 + 5) for _ in range(6))
        bids = [{"ts": t, "item": random_.randrange(4), "price": random_.randrange(99)} for t in ts]
        sold = [{"ts": t, "item": random_.randrange(4), "buyer": random_.choice("xyz")} for t in ts]
        batches += [("Bids", bids), ("Sold", sold)]
    return batches


def expected(batches: list[tuple[str, list[dict[str, Any]]]]) -> list[tuple[Any, ...]]:
    script = compile_script("; ".join([*STREAMS.values(), QUERY]))
    inputs: dict[str, list[Arrival]] = {"Bids": [], "Sold": []}
    for stream, rows in batches:
        for row in rows:
            ts, *values = row.values()
            inputs[stream].append(Arrival(0, ts, len(inputs[stream]), tuple(values)))
    return [(c.ts, c.op, c.row) for c in reference.evaluate(script.queries[0].plan, inputs)]


FAULTS: dict[str, Callable[[Network, int], None]] = {
    "a home is killed and comes back": lambda n, i: (n.kill("n1"), n.begin("n1")),  # type: ignore[dict-item]
    "the node that runs the query is killed and comes back": (
        lambda n, i: (n.kill("n3"), n.begin("n3"))  # type: ignore[dict-item]
    ),
    "a home is paused": lambda n, i: (n.pause("n2"), time.sleep(1.5), n.go_on("n2")),  # type: ignore[dict-item]
    "all of it": lambda n, i: (n.kill(f"n{1 + i % 3}"), n.begin(f"n{1 + i % 3}")),  # type: ignore[dict-item]
}


@pytest.mark.heavy
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_faults_leave_no_trace_in_the_result(network: Network, strategy: str) -> None:
    batches = drawn(7)
    for node, text in STREAMS.items():
        network.cql(node, text)
    network.cql("n3", QUERY, strategy)
    told = network.ask("n1", "GET", "/queries/sales/placed?format=json").json()
    assert ["fragment" in i and i["fragment"] is not None for i in told["inputs"]] == (
        [True] if strategy == "edge" else [False, False]
    )
    faults = list(FAULTS.values())
    for number, (stream, rows) in enumerate(batches):
        home = "n1" if stream == "Bids" else "n2"
        network.push([home, "n3", "n1", "n2"], stream, rows, f"b{number}")
        if number % 8 == 7:
            faults[number // 8 % len(faults)](network, number // 8)
    for stream in ("Bids", "Sold"):
        patiently(lambda stream=stream: network.ask("n3", "POST", f"/streams/{stream}/finish"))  # type: ignore[misc]
    said = _said_at_the_end(network)
    assert said == expected(batches)


def _said_at_the_end(network: Network) -> list[tuple[Any, ...]]:
    until = time.monotonic() + 240
    while True:
        answer = patiently(lambda: network.ask("n1", "GET", "/queries/sales"))
        if answer.json()["state"] == "finished":
            break
        assert time.monotonic() < until, answer.text
        time.sleep(0.1)
    answer = patiently(lambda: network.ask("n2", "GET", "/queries/sales/results?format=json"))
    rows = answer.json()["rows"]
    return [(r["ts"], r["op"], tuple(r["row"].values())) for r in rows]


@pytest.mark.heavy
def test_a_node_that_is_gone_for_good_is_forgotten(network: Network) -> None:
    network.cql("n1", STREAMS["n1"])
    network.cql("n3", "CREATE QUERY every AS SELECT * FROM Bids [Now]")
    network.ask("n1", "POST", "/network/forget", json={"node": "n3"})
    assert network.ask("n1", "GET", "/network/publications").json() == ["pub/Bids>n3.1"]
    network.kill("n3")
    gone = network.nodes.pop("n3")

    def forget() -> httpx.Response:
        answer = network.ask("n2", "POST", "/network/forget", json={"node": "n3"})
        return httpx.Response(503) if answer.status_code == 409 else answer  # not down yet

    patiently(forget)
    patiently(
        lambda: httpx.Response(
            200 if network.ask("n1", "GET", "/network/publications").json() == [] else 503
        )
    )
    assert network.ask("n1", "GET", "/queries").json() == []
    network.cql("n2", "CREATE QUERY every AS SELECT * FROM Bids [Now]")
    assert gone.name not in network.ask("n2", "GET", "/network").text
