"""Drawn trees in which nodes come, are re-hung and killed, while tolerances start and end: each
reader gets what the reference says of its class, once and in order."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from tests.drawn import some
from tests.runtime.network.trees.test_trees import Nodes
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.site.positions import START
from thalweg.plan.nodes import Node, Tolerant, walk
from thalweg.runtime.network.labels.labels import class_text

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

STREAM = "CREATE STREAM W (k BIGINT, v DOUBLE, t BIGINT) TIMESTAMP BY t"
TOLERANCES = ("v 2.0 PER k", "v 3.5 PER k", "v 20 PERCENT PER k", "2 UPDATES PER k", "v 2.0")
READERS, BROKERS = ("r1", "r2", "r3"), ("b1", "b2")


class Drawn(Nodes):
    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder)
        self.home.execute(STREAM)
        self.draw = random.Random(seed)
        self.values = dict.fromkeys(range(3), 10.0)
        self.arrivals: list[Arrival] = []
        self.queries: dict[str, tuple[str, Node, dict[Tolerant, reference.ClassStart]]] = {}
        self.known = 0

    def walk(self, rows: int) -> None:
        first = len(self.arrivals)
        for t in range(first, first + rows):
            k = self.draw.randrange(3)
            self.values[k] += self.draw.gauss(0, 1.5)
            self.arrivals.append(Arrival(0, t, t, (k, self.values[k], t)))
        pushed = [a.row for a in self.arrivals[first:]]
        self.home.site.push("W", pl.DataFrame(pushed, schema=["k", "v", "t"], orient="row"))

    def reads(self, name: str) -> None:
        node = self.nodes.get(name) or self.start(name)
        eventually(lambda: node.find("W") is not None)
        self.known += 1
        query, tolerance = f"q{self.known}", self.draw.choice(TOLERANCES)
        text = f"CREATE QUERY {query} AS SELECT ISTREAM k, v, t FROM W [Now] TOLERANCE {tolerance}"
        node.execute(text)
        plan = compile_script(f"{STREAM}; {text}").queries[0].plan
        (tolerant,) = (n for n in walk(plan) if isinstance(n, Tolerant))
        book = self.home.labelling.book("due/W")
        class_ = book.by_text[class_text(tolerant)]
        start = reference.ClassStart(class_.horizon, book.last_starts[class_.number].since)
        self.queries[query] = name, plan, {tolerant: start}

    def leave(self) -> None:
        if len(self.queries) > 1:
            query = self.draw.choice(sorted(self.queries))
            name, _, _ = self.queries.pop(query)
            self.nodes[name].execute(f"DROP QUERY {query}")

    def rehang(self) -> None:
        brokers = [b for b in BROKERS if b in self.nodes]
        wished = {r: self.draw.choice(brokers) for r in READERS if brokers}
        if len(brokers) > 1:
            wished[brokers[1]] = brokers[0]
        self.choice.wished = wished

    def step(self) -> None:
        what = self.draw.choice(["read", "walk", "walk", "rehang", "leave", "kill"])
        if what == "read":
            self.reads(self.draw.choice(READERS))
        elif what == "leave":
            self.leave()
        elif what == "rehang":
            self.rehang()
        elif what == "kill" and len([b for b in BROKERS if b in self.nodes]) > 1:
            gone = self.draw.choice(BROKERS)
            self.kill(gone)
            self.rehang()
        for _ in range(self.draw.randrange(1, 6)):
            self.walk(self.draw.randrange(1, 12))

    def check(self, name: str = "") -> None:
        self.walk(10)
        for query, (of, plan, classes) in self.queries.items():
            run = self.nodes[of].site.engine.roster_entry(query)
            assert run is not None
            last = len(self.arrivals) - 1
            found = reference.evaluate(
                plan, {"W": self.arrivals}, start=run.started, classes=classes
            )
            due = [c.row for c in found if c.ts < last]
            assert due, "it would prove nothing"
            eventually(lambda o=of, q=query, t=last: self.frontier(o, q) >= t)  # type: ignore[misc]
            said = [row for row in self.said(of, query) if row[2] < last]
            assert said == due, (query, of)

    def frontier(self, of: str, query: str) -> int:
        self.walk(1)  # rows make mirrors go over, so that they have to flow
        site = self.nodes[of].site
        return site.reader(site.query(query)).frontier().instant

    def said(self, of: str, query: str) -> list[tuple[int, float, int]]:
        site = self.nodes[of].site
        reader = site.reader(site.query(query))
        pages = reader.pages(START, reader.frontier())
        rows = [row for page in pages for row in page.emission.rows.rows()]
        return [row[-3:] for row in rows]


@pytest.mark.parametrize("seed", some(range(20), 20))
def test_each_reader_gets_what_is_due_for_it(tmp_path: Path, seed: int) -> None:
    nodes = Drawn(tmp_path, seed)
    try:
        for broker in BROKERS:
            nodes.start(broker, "none")
        nodes.reads("r1")
        nodes.reads("r2")
        nodes.rehang()
        for _ in range(12):
            nodes.step()
        nodes.check()
    finally:
        nodes.close()
