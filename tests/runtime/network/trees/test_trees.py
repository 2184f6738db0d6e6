"""Nodes in this process, with protocols and data between them: trees that are re-hung."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.runtime.waiting import eventually

from thalweg.engine.site.positions import START
from thalweg.engine.site.settings import SiteSettings
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.opening import NodeSettings, open_node
from thalweg.runtime.network.trees.choosing import Member

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]


class Wished:
    """A choice by hand."""

    name = "wished"
    in_rounds = False

    def __init__(self, parents: dict[str, str]) -> None:
        self.wished = parents

    def parents(self, home: Member, members: Sequence[Member]) -> dict[str, str]:
        return {m.name: self.wished.get(m.name, home.name) for m in members}

    def why(self, home: Member, members: Sequence[Member], node: str) -> list[str]:
        return [f"{node} hangs under {self.wished.get(node, home.name)}: somebody wants it so"]


class Nodes:
    def __init__(self, folder: Path, trees: str = "nearest", round_s: float = 1.0) -> None:
        self._folder, self._close = folder, dict[str, Callable[[], None]]()
        self._trees, self._round_s = trees, round_s
        self.nodes: dict[str, Node] = {}
        self.pushed = 0
        self.choice = Wished({})
        self.home = self.start("home")
        self.home.execute("CREATE STREAM S (k BIGINT, t BIGINT) TIMESTAMP BY t")
        assert self.home.trees is not None
        self.home.trees.choice = self.choice

    def start(self, name: str, engine: str = "shared") -> Node:
        known = self.nodes.get("home")
        settings = NodeSettings(
            name,
            self._folder / name,
            join=() if known is None else (known.directory.me.address,),
            engine=engine,
            trees=self._trees,
            round_s=self._round_s,
            settings=SiteSettings(durable=False, tick_interval_s=0.01),
        )
        node, self._close[name] = open_node(settings, "http://127.0.0.1:1")
        self.nodes[name] = node
        return node

    def read(self, *names: str) -> None:
        for name in names:
            node = self.start(name)
            eventually(lambda n=node: n.find("S") is not None)  # type: ignore[misc]
            node.execute(f"CREATE QUERY q{name} AS SELECT ISTREAM k, t FROM S [Range 3]")

    def kill(self, name: str) -> None:
        """Without a goodbye: to the others it looks like a crash."""
        node = self.nodes.pop(name)
        assert node.trees is not None
        self._close.pop(name)
        node.close()
        node.trees._driver.close()

    def close(self) -> None:
        for name in reversed(self._close):
            self._close[name]()

    def push(self, rows: int = 1) -> None:
        times = range(self.pushed, self.pushed + rows)
        self.home.site.push("S", pl.DataFrame({"k": [t % 10 for t in times], "t": times}))
        self.pushed += rows

    def parent(self, name: str) -> str:
        """Rows make mirrors go over, so that they have to flow."""
        self.push()
        node = self.nodes[name]
        stream = node.site.catalog.find("S")
        if stream is None:
            return ""
        routes = node.mirrors.routes(stream)  # type: ignore[arg-type]
        return (routes[0].at or "home") if len(routes) == 1 else ""

    def above(self, name: str) -> tuple[str, ...]:
        trees = self.nodes[name].trees
        assert trees is not None
        return tuple(trees.above("S"))

    def check(self, name: str) -> None:
        self.push(10)
        site = self.nodes[name].site
        expected = list(range(self.pushed - 1))
        eventually(lambda: len(_said(self.nodes[name])) >= len(expected))
        assert _said(self.nodes[name]) == expected
        assert site.stream("S") is not None


def _said(node: Node) -> list[int]:
    reader = node.site.reader(node.site.query(f"q{node.name}"))
    pages = reader.pages(START, reader.frontier())
    return [t for page in pages for t in page.emission.rows.to_series(-1).to_list()]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path)
    yield made
    made.close()


def test_who_loses_its_parent_goes_on_under_the_grandparent(nodes: Nodes) -> None:
    nodes.choice.wished = {"b2": "b1", "r": "b2"}
    for broker in ("b1", "b2"):
        nodes.start(broker, "none")
    nodes.read("r")
    eventually(
        lambda: (
            (nodes.parent("r"), nodes.parent("b2"), nodes.parent("b1")) == ("b2", "b1", "home")
            and nodes.above("r") == ("home", "b1", "b2")  # news of the way comes down by and by
        )
    )
    nodes.check("r")
    nodes.choice.wished = {"r": "b1"}
    nodes.kill("b2")
    nodes.push(20)
    eventually(lambda: nodes.parent("r") == "b1")
    nodes.check("r")


def test_wishes_that_go_round_make_no_circle(nodes: Nodes) -> None:
    nodes.read("r1", "r2", "r3")
    turns = [
        {"r1": "r2", "r2": "r3"},
        {"r2": "r1", "r3": "r2"},
        {"r3": "r1", "r1": "r2", "r2": "r3"},
    ]
    for turn in range(9):
        nodes.choice.wished = turns[turn % 3]
        for _ in range(10):
            nodes.push(3)
            time.sleep(0.2)
    nodes.choice.wished = {}
    for name in ("r1", "r2", "r3"):
        eventually(lambda n=name: nodes.parent(n) == "home")  # type: ignore[misc]
        nodes.check(name)


def test_a_round_moves_who_hangs_under_a_node_that_has_become_slow(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, "adaptive")
    try:
        nodes.choice.wished = {"r": "slow"}
        nodes.read("slow", "r")
        slow = nodes.nodes["slow"]
        eventually(lambda: (nodes.parent("r"), nodes.parent("slow")) == ("slow", "home"))
        nodes.choice.in_rounds = True  # the home says nothing any more
        slow.passing.hop_s = lambda: 30.0  # type: ignore[method-assign]
        eventually(lambda: nodes.parent("r") == "home")
        nodes.check("r")
        nodes.check("slow")
    finally:
        nodes.close()


def test_a_reader_that_is_held_up_loses_fidelity_and_gets_it_back(nodes: Nodes) -> None:
    nodes.read("r")
    node = nodes.nodes["r"]
    stream = node.site.stream("S")

    def is_between(low: float, high: float) -> bool:
        nodes.push()
        found = node.fidelity.periods(2.0, 1).get("S")
        measured = None if found is None else found[0][0].fidelity
        return measured is not None and low <= measured <= high

    eventually(lambda: is_between(0, 1))
    with node.mirrors._routing.taking(stream):
        eventually(lambda: is_between(0, 0.3))
    eventually(lambda: is_between(0.01, 1))
    nodes.check("r")
