"""Rows that are due, along trees: an edge carries what any class below it needs, and no more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.runtime.network.trees.test_trees import Nodes
from tests.runtime.waiting import eventually

from thalweg.engine.site.positions import START
from thalweg.runtime.network.node import Node

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

TOLERANCES = {"r1": 2.0, "r2": 4.0, "r3": 3.0}


class Walk(Nodes):
    """Keys that walk at random; each reader has a tolerance of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.home.execute("CREATE STREAM W (k BIGINT, v DOUBLE, t BIGINT) TIMESTAMP BY t")
        self.random, self.values = random.Random(3), dict.fromkeys(range(3), 10.0)
        self.rows: list[tuple[int, float, int]] = []

    def walk(self, rows: int = 1) -> None:
        first = len(self.rows)
        for t in range(first, first + rows):
            k = self.random.randrange(3)
            self.values[k] += self.random.gauss(0, 1.5)
            self.rows.append((k, self.values[k], t))
        self.home.site.push(
            "W", pl.DataFrame(self.rows[first:], schema=["k", "v", "t"], orient="row")
        )

    def reads(self, name: str, query: str = "") -> None:
        node = self.nodes.get(name) or self.start(name)
        eventually(lambda: node.find("W") is not None)
        within = f"TOLERANCE v {TOLERANCES[name]} PER k"
        node.execute(
            f"CREATE QUERY q{query or name} AS SELECT ISTREAM k, v, t FROM W [Now] {within}"
        )

    def hangs(self, name: str) -> str:
        """Rows make mirrors go over, so that they have to flow."""
        self.walk()
        node = self.nodes[name]
        stream = node.site.catalog.find("due/W")
        if stream is None:
            return ""
        routes = node.mirrors.routes(stream)  # type: ignore[arg-type]
        return (routes[0].at or "home") if len(routes) == 1 else ""

    def due(self, name: str, since: int = 0) -> list[int]:
        held: dict[int, float] = {}
        found = []
        for k, v, t in self.rows:
            if k not in held or abs(v - held[k]) > TOLERANCES[name]:
                held[k] = v
                found.append(t)
        return [t for t in found if since <= t < len(self.rows) - 1]

    def came(self, name: str) -> int:
        return self.nodes[name].site.engine.store.inputs.arrived()["due/W"]

    def settled(self, *names: str) -> None:
        """All that is due has been said, and nothing else."""
        self.walk(10)
        for name in names:
            node, expected = self.nodes[name], self.due(name)
            eventually(lambda n=node, e=expected: len(said(n)) >= len(e))  # type: ignore[misc]
            assert said(node) == expected


def said(node: Node) -> list[int]:
    reader = node.site.reader(node.site.query(f"q{node.name}"))
    pages = reader.pages(START, reader.frontier())
    return [t for page in pages for t in page.emission.rows.to_series(-1).to_list()]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Walk]:
    made = Walk(tmp_path)
    yield made
    made.close()


def test_an_edge_carries_the_union_of_the_classes_below_it(nodes: Walk) -> None:
    nodes.choice.wished = dict.fromkeys(TOLERANCES, "b")
    broker = nodes.start("b", "none")
    for name in TOLERANCES:
        nodes.reads(name)
    eventually(
        lambda: all(nodes.hangs(n) == "b" for n in TOLERANCES) and nodes.hangs("b") == "home"
    )
    nodes.settled(*TOLERANCES)
    since = len(nodes.rows) - 1
    before = {n: nodes.came(n) for n in ("b", *TOLERANCES)}
    nodes.walk(200)
    nodes.settled(*TOLERANCES)
    due = {n: set(nodes.due(n, since)) for n in TOLERANCES}
    due["b"] = set.union(*due.values())
    for name, rows in due.items():
        assert nodes.came(name) - before[name] == len(rows)
    assert len(due["b"]) < 200
    assert broker.site.catalog.find("W") is None


def test_what_passes_does_not_depend_on_the_tree(nodes: Walk) -> None:
    """Readers come and go, brokers are killed and everybody is re-hung."""
    nodes.choice.wished = {"r1": "b1", "r2": "b1"}
    for broker in ("b1", "b2"):
        nodes.start(broker, "none")
    nodes.reads("r1")
    nodes.reads("r2")
    eventually(lambda: nodes.hangs("r1") == "b1" == nodes.hangs("r2"))
    nodes.settled("r1", "r2")
    nodes.choice.wished = {"r1": "b2", "r2": "b1", "b2": "b1"}
    eventually(lambda: nodes.hangs("r1") == "b2")
    nodes.reads("r3", "other")  # one more class, for a while
    nodes.walk(20)
    nodes.nodes["r3"].execute("DROP QUERY qother")
    nodes.choice.wished = {"r1": "b2"}
    nodes.kill("b1")
    nodes.walk(30)
    eventually(lambda: nodes.hangs("r2") == "home")
    nodes.settled("r1", "r2")
