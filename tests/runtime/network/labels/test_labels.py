"""Rows that are due for tolerance classes, and no others, cross the network.

What a query says is what the reference says of its class, as its home has started it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.plan.nodes import Node, Tolerant, walk
from thalweg.runtime.network.labels.labels import class_text

pytestmark = pytest.mark.timeout(600)

STREAM = "CREATE STREAM S (k BIGINT, v DOUBLE, t BIGINT) TIMESTAMP BY t"
END = 1_000_000


class Three:
    """A stream at n1, which walks at random, and readers at n2 and n3."""

    def __init__(self, folder: Path) -> None:
        shared = Shared()
        self.home, self.one, self.two = (LiveNode(n, folder, shared) for n in ("n1", "n2", "n3"))
        self.home.cql(STREAM)
        self.random, self.arrivals = random.Random(7), list[Arrival]()
        self.values = dict.fromkeys(range(4), 10.0)
        self.queries: dict[str, tuple[LiveNode, Node, dict[Tolerant, reference.ClassStart]]] = {}

    def close(self) -> None:
        for node in (self.home, self.one, self.two):
            node.close()

    def push(self, rows: int) -> None:
        first = len(self.arrivals)
        for t in range(first, first + rows):
            k = self.random.randrange(4)
            self.values[k] = round(self.values[k] + self.random.gauss(0, 1), 3)
            self.arrivals.append(Arrival(0, t, t, (k, self.values[k], t)))
        pushed = self.arrivals[first:]
        self.home.push("S", *(dict(zip("kvt", a.row, strict=True)) for a in pushed))

    def submit(self, node: LiveNode, name: str, tolerance: str, window: str = "[Now]") -> None:
        """And what is decided of its class."""
        text = f"SELECT ISTREAM k, v, t FROM S {window} TOLERANCE {tolerance} PER k WHERE k < 3"
        node.cql(f"CREATE QUERY {name} AS {text}")
        plan = compile_script(f"{STREAM}; CREATE QUERY {name} AS {text}").queries[0].plan
        starts = {n: self.start(n) for n in walk(plan) if isinstance(n, Tolerant)}
        self.queries[name] = node, plan, starts

    def start(self, node: Tolerant) -> reference.ClassStart:
        """As its home has written it down."""
        book = self.home.node.labelling.book("due/S")
        begun = book.by_text[class_text(node)]
        since = book.last_starts[begun.number].since
        return reference.ClassStart(begun.horizon, since)

    def expected(self, name: str) -> list[Change]:
        node, plan, classes = self.queries[name]
        run = node.node.site.engine.roster_entry(name)
        assert run is not None
        inputs = {"S": [*self.arrivals, Arrival(0, END, END, (9, 0.0, END))]}
        found = reference.evaluate(plan, inputs, start=run.started, classes=classes)
        return [c for c in found if c.ts < END]

    def check(self) -> None:
        self.home.push("S", {"k": 9, "v": 0.0, "t": END})
        last = self.arrivals[-1].timestamp
        for name, (node, _, _) in self.queries.items():
            expected = [(c.ts, *c.row) for c in self.expected(name)]
            assert expected, "it would prove nothing"
            reader = node.node.site.reader(node.node.site.query(name))
            eventually(lambda r=reader: r.frontier().instant > last)  # type: ignore[misc]
            assert said(node, name) == expected, name


def said(node: LiveNode, query: str) -> list[tuple[Any, ...]]:
    return [(r["ts"], *r["row"].values()) for r in node.rows(query) if r["ts"] < END]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    made = Three(tmp_path)
    yield made
    made.close()


def test_readers_get_the_rows_of_their_classes_only(three: Three) -> None:
    three.submit(three.one, "q1", "v 1.5")
    three.submit(three.two, "q2", "v 10 PERCENT")
    three.submit(three.two, "q3", "2 UPDATES")
    three.push(100)
    three.push(100)
    three.check()
    due = {(c.ts, c.row) for c in three.expected("q1")}
    both = {(c.ts, c.row) for q in ("q2", "q3") for c in three.expected(q)}
    assert len(due) < 200 > len(both)
    assert three.one.node.site.engine.store.inputs.arrived() == {"due/S": len(due)}
    assert three.two.node.site.engine.store.inputs.arrived() == {"due/S": len(both)}


def test_who_comes_later_begins_with_what_its_class_holds(three: Three) -> None:
    three.push(50)
    three.submit(three.one, "q1", "v 2")
    three.push(50)
    three.submit(three.two, "q2", "v 2", "[Unbounded]")  # the same class
    three.push(50)
    three.submit(three.one, "q3", "v 1", "[Range 20]")  # one more, while the first flows
    three.push(50)
    three.submit(three.two, "q4", "v 1", "[Range 10]")
    three.submit(three.two, "q5", "v 2", "[Partition By k Rows 1]")
    three.push(50)
    three.check()


def test_classes_outlast_restarts(three: Three) -> None:
    three.submit(three.one, "q1", "v 2", "[Range 30]")
    three.push(60)
    three.home.close()
    three.home.open()
    three.push(60)
    three.submit(three.one, "q2", "v 1.1", "[Range 30]")
    three.one.close()
    three.push(60)
    three.one.open()
    three.home.close()
    three.home.open()
    three.push(60)
    three.check()


def test_who_wants_all_rows_gets_them_and_what_has_no_label_decides_by_itself(
    three: Three,
) -> None:
    three.submit(three.one, "q1", "v 2")
    three.two.cql("CREATE QUERY every AS SELECT ISTREAM k, v, t FROM S [Now]")
    three.two.cql("CREATE QUERY aged AS SELECT ISTREAM k, v FROM S [Now] TOLERANCE 1000 PER k")
    three.push(80)
    three.check()
    eventually(lambda: len(three.two.rows("every")) >= 80)
    assert [r["row"]["t"] for r in three.two.rows("every")][:80] == list(range(80))
    due = [c.row for c in three.expected("q1")]
    assert len(due) < 80
    assert three.two.node.site.catalog.find("due/S") is None
    first = [a.row[:2] for k in range(4) for a in three.arrivals if a.row[0] == k][:1]
    aged = [tuple(r["row"].values()) for r in three.two.rows("aged")]
    assert first[0] in aged[:4]


def test_a_class_goes_with_its_last_reader(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    three.submit(three.one, "q1", "v 2")
    three.push(20)
    monkeypatch.setattr("thalweg.runtime.network.labels.labelling.KEPT_FOR_S", 0.0)
    three.one.cql("DROP QUERY q1")
    site = three.home.node.site
    eventually(lambda: [d.name for d in site.catalog.definitions.values()] == ["S"])
