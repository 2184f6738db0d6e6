"""A node under hostile requests, of users and in the name of other nodes: it answers each, goes on,
and what the network computes stays exact."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz.requests import draw_networked
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

# Fewer than at a service's doors: each may be passed on, and all rows are read in the end.
REQUESTS = max(400, int(os.environ.get("THALWEG_FUZZ_REQUESTS", "800")) // 20)
PEACE = "CREATE STREAM Peace (a INTEGER) TIMESTAMP BY ts"
CALM = "CREATE QUERY calm AS SELECT SUM(a) AS total FROM Peace [Range 10]"
ATTACKED = """
CREATE STREAM S (a INTEGER, d DATE, t TIMESTAMP, x DECIMAL(38, 2)) TIMESTAMP BY ts;
CREATE RELATION R (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT * FROM S [Range 5];
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LiveNode, LiveNode]]:
    shared = Shared()
    made = LiveNode("a", tmp_path, shared), LiveNode("b", tmp_path, shared)
    yield made
    for node in made:
        node.close()


def push(node: LiveNode, ts: int) -> None:
    node.push("Peace", {"ts": ts, "a": ts})


def totals(node: LiveNode) -> list[tuple[int, int]]:
    """Each sum that is not 0 or empty, with its instant."""
    rows = [(r["ts"], r["row"]["total"]) for r in node.rows("calm") if r["op"] == "+"]
    return [row for row in rows if row[1]]


@pytest.mark.parametrize("seed", range(2))
def test_a_node_answers_every_request_and_the_network_stays_exact(
    nodes: tuple[LiveNode, LiveNode], seed: int
) -> None:
    a, b = nodes
    a.cql(ATTACKED)
    b.cql(PEACE)
    a.cql(CALM)  # what it reads comes from the other node
    rng = random.Random(f"network doors {seed}")
    threads = {t.name for t in threading.enumerate()}
    for number in range(REQUESTS):
        hostile = draw_networked(rng)
        answer = a.http.request(
            hostile.method, hostile.url, headers=hostile.headers, content=hostile.body
        )
        told = f"{hostile}\n{answer.status_code} {answer.text[:2_000]}"
        assert answer.status_code not in (500, 501, 502), told
        if answer.status_code >= 400 and hostile.method != "HEAD":
            assert answer.headers["content-type"] == "application/problem+json", told
            assert answer.json()["detail"], told
        if number % 50 == 0:
            push(b, number)
    push(b, REQUESTS)
    stamps = range(50, REQUESTS, 50)
    eventually(lambda: (stamps[-1], stamps[-1]) in totals(a))
    assert totals(a) == [(ts, ts) for ts in stamps]
    for node in nodes:
        health = node.http.get("/health").json()
        assert health["ok"], health
    assert threads <= {t.name for t in threading.enumerate()}
