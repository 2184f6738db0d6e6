"""Nodes of a site balance as partners: who has little asks who has much, and rows do not show it.

Loads are pinned: what each fragment takes of a node's time, on whatever machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.runtime.network.fragments.test_fragments import (
    STREAMS,
    fragments_at,
    path_of,
    plan_of,
    pushed,
)
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually
from typer.testing import CliRunner

from thalweg.adapt.partners.objective import Ratio
from thalweg.adapt.partners.site import Observed
from thalweg.cli.main import app
from thalweg.plan.nodes import Aggregate
from thalweg.runtime.data.fragments import cut_plan
from thalweg.runtime.network.moves.partnering import Partnering, live_settings

ROUND_S = 0.2
NAMES = ("a", "b", "c", "d")
QUERIES = 4


def query(number: int, name: str = "sales") -> str:
    """The last bids of each item and all that was ever sold: nobody can rebuild either."""
    return f"""CREATE QUERY {name}{number} AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS top
               FROM Bids [Partition By item Rows {number + 2}] B, Sold [Unbounded] S
               WHERE B.item = S.item GROUP BY S.item"""


class Pinned(Partnering):
    """Each fragment takes a tenth of a node; `extern` is a second job."""

    extern = 0.0
    ratio: Ratio | None = None
    pr = 0.0
    hop_s = 0.0

    def observed(self) -> Observed:
        found = super().observed()
        even = tuple(structs.replace(f, load=0.1, ratio=self.ratio) for f in found.fragments)
        load = self.extern + 0.1 * len(even)
        return Observed(load, even, found.peers, self.pr, self.hop_s)


class Site:
    def __init__(self, folder: Path, begins_at: str = "b") -> None:
        self.shared, settings = Shared(), replace(live_settings(ROUND_S), rest_rounds=4)
        made = {n: LiveNode(n, folder, self.shared, partners=settings) for n in NAMES}
        self.nodes = made
        self.pinned: dict[str, Pinned] = {}
        made["a"].cql(STREAMS)
        for number in range(QUERIES):
            made["a"].cql(query(number, "whole"))
            plan = plan_of(made["c"], query(number))
            at = {path_of(plan, Aggregate): begins_at}
            made["c"].node.place(query(number), cut_plan(plan, at, "c"))
        self.upto = 1
        self.push()

    def begin(self, *names: str, advises: bool = False) -> None:
        for name in names or NAMES:
            node = self.nodes[name]
            assert node.partners is not None
            pinned = Pinned(node.node, node.driver, node.partners, advises=advises)
            self.pinned[name] = pinned
            node.node.partner_with(pinned)

    def push(self) -> None:
        pushed(self.nodes["a"], self.upto, self.upto + 30)
        self.upto += 30

    def again(self, name: str) -> None:
        """It stops, and starts with what is on its disk."""
        extern = self.pinned[name].extern
        self.nodes[name].close()
        self.nodes[name].open()
        self.begin(name)
        self.pinned[name].extern = extern

    def at(self) -> dict[str, int]:
        """How many fragments run where; what is left behind until readers have gone over is not
        counted."""
        found = {}
        for name, node in self.nodes.items():
            assert node.node.moving is not None
            running = [f for f in fragments_at(node) if not node.node.moving.is_given(f)]
            found[name] = len(running)
        return found

    def is_settled(self) -> bool:
        """No hand-over is open."""
        moving = [n.node.moving for n in self.nodes.values()]
        return all(m is not None and all(map(m.is_given, m.on_their_way())) for m in moving)

    def is_exact(self) -> bool:
        """What moved says what stayed says."""
        a, c = self.nodes["a"], self.nodes["c"]
        return all(
            said(a, f"whole{i}") == said(c, f"sales{i}") and said(a, f"whole{i}")
            for i in range(QUERIES)
        )

    def check_exact(self) -> None:
        self.push()
        a = self.nodes["a"]
        for i in range(QUERIES):
            eventually(lambda i=i: said(a, f"whole{i}")[-1][0] >= self.upto - 6, 60)  # type: ignore[misc]
        eventually(self.is_exact, 60)

    def moves(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.nodes["a"].http.get("/network/moves").json()
        return found

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


def said(node: LiveNode, name: str) -> list[tuple[Any, Any]]:
    return [(r["ts"], r["row"]) for r in node.rows(name)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_those_with_little_ask_and_get_fragments_with_their_state(site: Site) -> None:
    site.begin()
    # All four are native to a, where their streams are at home, and began at b.
    eventually(lambda: site.at()["b"] <= 2 and site.is_settled())
    site.check_exact()
    first, *_ = moves = site.moves()
    assert first["at"] == "b"
    assert {m["asked_by"] for m in moves} <= {f"{n} (partners)" for n in NAMES}
    assert all(m["by"] == "precopy" and m["sent"] > 0 for m in moves if m["state"] == "done")
    assert "asked for" in first["why"]
    assert "of a node's time" in first["why"]
    assert "foreign" in first["why"]
    eventually(lambda: site.at() == {"a": 1, "b": 1, "c": 1, "d": 1})
    site.check_exact()
    check_told(site)


def check_told(site: Site) -> None:
    """EXPLAIN names what the heuristics look at, the command who balances with whom."""
    c = site.nodes["c"]
    texts = [c.http.get(f"/queries/sales{i}/placed?format=text").text for i in range(QUERIES)]
    balanced = [t for t in texts if "balanced by partners, for the least PR_max" in t]
    assert len(balanced) == QUERIES
    assert sum("native here; its neighbours run at" in t for t in texts) == 1  # the one at a
    assert sum("foreign here, native to a" in t for t in texts) == QUERIES - 1
    assert all("runs at " in t and "one for each fragment" in t for t in texts)
    shown = CliRunner().invoke(app, ["network", "partners", "--url", site.nodes["a"].url])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert sorted(line.split()[0] for line in lines[1:]) == list(NAMES)
    assert "0.10" in lines[1]


def test_a_node_with_a_second_job_gives_and_gets_its_own_back_when_that_ends(site: Site) -> None:
    site.begin()
    eventually(lambda: site.at() == {"a": 1, "b": 1, "c": 1, "d": 1} and site.is_settled())
    site.pinned["a"].extern = 0.6
    eventually(lambda: site.at()["a"] == 0, 60)
    site.check_exact()
    site.pinned["a"].extern = 0.0
    eventually(lambda: site.at()["a"] == 1, 60)
    site.check_exact()


@pytest.mark.parametrize("role", ["asks", "gives"])
def test_whoever_stops_in_the_middle_no_fragment_is_lost_or_has_two_owners(
    site: Site, role: str
) -> None:
    giver, lost = site.nodes["b"].node, site.shared.exchange.lost
    move = giver.move

    def silenced(*given: Any, **how: Any) -> Any:
        lost.add("d")  # what others say does not reach it: the hand-over stands still there
        giver.move = move  # type: ignore[method-assign] # once: it may ask again
        return move(*given, **how)

    giver.move = silenced  # type: ignore[method-assign]
    site.begin("b", "d")
    eventually(lambda: bool(site.moves()), 60)
    first = site.moves()[0]
    assert (first["at"], first["to"], first["is_over"]) == ("b", "d", False)
    site.again({"asks": "d", "gives": "b"}[role])
    site.push()
    lost.discard("d")
    eventually(lambda: sum(site.at().values()) == QUERIES and site.is_settled(), 90)
    site.check_exact()
    assert site.moves()[0]["is_over"]


def test_what_would_become_the_worst_query_stays(tmp_path: Path) -> None:
    """A hop takes a hundred times the work of a result: elsewhere its PR would be above all."""
    site = Site(tmp_path, begins_at="a")  # where both streams are
    try:
        site.begin()
        for pinned in site.pinned.values():
            pinned.ratio, pinned.pr, pinned.hop_s = Ratio(2.0, 0.0, 0.001), 3.0, 0.1
        rounds = {n: p.state()["rounds"] for n, p in site.pinned.items()}
        eventually(
            lambda: all(p.state()["rounds"] >= rounds[n] + 5 for n, p in site.pinned.items())
        )
        # c reads them: there a hop begins and another one ends.
        assert {m["to"] for m in site.moves()} <= {"c"}
        for pinned in site.pinned.values():
            pinned.hop_s = 0.0
        eventually(lambda: {m["to"] for m in site.moves()} & {"b", "d"} != set(), 60)
        assert "PR 2 = 2 + 0, foreseen" in next(m["why"] for m in site.moves())
        site.check_exact()
    finally:
        site.close()


def test_who_only_advises_moves_nothing_and_says_what_it_would(site: Site) -> None:
    site.begin(advises=True)
    eventually(lambda: any(m["state"] == "advised" for m in site.moves()))
    assert site.at()["b"] == QUERIES
    (told,) = {m["by"] for m in site.moves()}
    assert told == "precopy"
