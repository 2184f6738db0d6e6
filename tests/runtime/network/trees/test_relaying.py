"""Streams that are had from who reads them: the same rows, whoever is in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.runtime.data.client import NotServed
from thalweg.runtime.data.messages import Open

STREAM = "CREATE STREAM S (k BIGINT, t BIGINT) TIMESTAMP BY t"


class Line:
    """A home, and readers of its stream."""

    def __init__(self, folder: Path, count: int) -> None:
        shared = Shared()
        self.nodes = [LiveNode(f"n{i + 1}", folder, shared) for i in range(count)]
        for node in self.nodes:
            node.node.mirrors.trees = True
        self.home = self.nodes[0]
        self.home.cql(STREAM)
        self.pushed = 0

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def push(self, upto: int) -> None:
        rows = [{"k": t % 10, "t": t} for t in range(self.pushed, upto)]
        self.home.push("S", *rows)
        self.pushed = upto

    def reads(self, node: LiveNode, low: int, high: int) -> None:
        node.cql(
            f"CREATE QUERY q{node.name} AS SELECT ISTREAM k, t FROM S [Range 5] "
            f"WHERE k >= {low} AND k < {high}"
        )

    def has(self, node: LiveNode, low: int, high: int, upto: int | None = None) -> None:
        """All rows that are final, once and in order."""
        last = (self.pushed if upto is None else upto) - 1
        expected = [{"k": t % 10, "t": t} for t in range(last) if low <= t % 10 < high]
        eventually(lambda: len(node.values(f"q{node.name}")) >= len(expected))
        assert node.values(f"q{node.name}") == expected

    def hang(self, node: LiveNode, to: LiveNode, *, alone: bool = False) -> None:
        mirrors, stream = node.node.mirrors, node.node.site.stream("S")
        entry = node.node.directory.defined()["s"]
        if alone:
            mirrors.rehang_alone(stream, entry, to.name)
        else:
            mirrors.rehang(stream, entry, to.name)

    def hangs(self, node: LiveNode, to: LiveNode) -> None:
        def is_so() -> bool:
            stream = node.node.site.stream("S")
            place = node.node.mirrors.place(stream)
            (route, *more) = node.node.mirrors.routes(stream)
            at = route.at or self.home.name
            return not more and at == to.name and place.publication == route.publication

        eventually(is_so)

    def sent(self, by: LiveNode) -> dict[str, str]:
        """What a node keeps for others: readers and conditions."""
        found = {}
        for name in by.node.data.publications.names():
            query = by.node.site.catalog.find(name)
            if query is None:
                continue  # it is about to go
            text = query.text
            found[name.rpartition(">")[2].rpartition(".")[0]] = text.partition(" WHERE ")[2]
        return found


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path, 3)
    yield made
    made.close()


def test_a_reader_of_a_reader_gets_the_same_rows(line: Line) -> None:
    home, relay, reader = line.nodes
    line.push(20)
    line.reads(relay, 0, 8)
    line.reads(reader, 2, 5)
    line.push(40)
    line.hang(reader, relay)
    line.push(60)
    line.hangs(reader, relay)
    line.push(100)
    eventually(lambda: reader.values("qn3")[-1:] == [{"k": 4, "t": 94}])
    said = [row["t"] for row in reader.values("qn3")]
    assert said == [t for t in range(said[0], 99) if 2 <= t % 10 < 5]
    eventually(lambda: set(line.sent(home)) == {"n2"})


def test_a_relay_gets_more_where_its_readers_want_more(line: Line) -> None:
    home, relay, reader = line.nodes
    line.reads(relay, 0, 3)
    line.reads(reader, 2, 9)
    line.push(30)
    line.has(reader, 2, 9)
    line.hang(reader, relay)
    line.push(60)
    line.hangs(reader, relay)
    line.push(90)
    line.has(reader, 2, 9)
    line.has(relay, 0, 3)
    eventually(lambda: set(line.sent(home)) == {"n2"})
    assert line.sent(home)["n2"] == "((k >= 0) AND (k <= 8))"


def test_a_node_that_reads_nothing_passes_on(line: Line) -> None:
    home, broker, reader = line.nodes
    line.reads(reader, 0, 4)
    line.push(30)
    line.has(reader, 0, 4)
    line.hang(reader, broker)
    line.push(60)
    line.hangs(reader, broker)
    line.push(90)
    line.has(reader, 0, 4)
    eventually(lambda: set(line.sent(home)) == {"n2"})
    reader.cql("DROP QUERY qn3")
    eventually(lambda: not line.sent(broker) and not line.sent(home))
    assert broker.node.site.catalog.find("S") is None
    eventually(lambda: not home.node.site.engine.holds.holders())


def test_the_end_of_a_stream_and_promises_pass_through(line: Line) -> None:
    home, broker, reader = line.nodes
    line.reads(reader, 0, 10)
    line.push(10)
    line.has(reader, 0, 10)
    line.hang(reader, broker)
    line.push(20)
    line.hangs(reader, broker)
    home.http.post("/streams/S/finish")
    eventually(lambda: len(reader.values("qn3")) == 20)


def test_who_loses_its_publisher_goes_on_elsewhere_from_its_instant(line: Line) -> None:
    home, broker, reader = line.nodes
    line.reads(reader, 0, 10)
    line.push(20)
    line.has(reader, 0, 10)
    line.hang(reader, broker)
    line.push(40)
    line.hangs(reader, broker)
    broker.node.data.shutdown()  # it is away
    line.push(80)
    line.hang(reader, home, alone=True)
    line.push(120)
    line.hangs(reader, home)
    line.has(reader, 0, 10)


def test_a_publisher_that_is_gone_before_it_has_said_anything_is_left(line: Line) -> None:
    home, broker, reader = line.nodes
    line.reads(reader, 0, 10)
    line.push(20)
    line.has(reader, 0, 10)
    line.hang(reader, broker)
    broker.node.data.shutdown()
    line.push(40)
    eventually(lambda: reader.node.mirrors.awaited(reader.node.site.stream("S")) == "n2")
    line.hang(reader, home, alone=True)
    line.push(60)
    line.hangs(reader, home)
    line.has(reader, 0, 10)


def test_what_is_not_held_any_more_is_refused(line: Line) -> None:
    home, _, reader = line.nodes
    line.reads(reader, 0, 10)
    inputs = home.node.site.engine.store.inputs

    def has_let_go() -> bool:
        """What is acknowledged goes with later ticks."""
        line.push(line.pushed + 10)
        line.has(reader, 0, 10)
        return inputs.complete_from("S", range(2)) > 3

    eventually(has_let_go)
    client = reader.node.mirrors.connect("n1")
    with pytest.raises(NotServed, match="not from 3"):
        client.ask(Open("S", "n3", 77, 0, None, 3, held=True))
    client.close()
    assert not any(name.endswith(".77") for name in home.node.data.publications.names())


def test_nobody_takes_a_stream_from_who_has_it_from_there(line: Line) -> None:
    _, relay, reader = line.nodes
    line.reads(relay, 0, 10)
    line.reads(reader, 0, 10)
    relay.node.relaying.hangs.above = lambda _: ("n3",)
    line.push(20)
    line.has(reader, 0, 10)
    with pytest.raises(NotServed, match="by way of n3"):
        line.hang(reader, relay)
