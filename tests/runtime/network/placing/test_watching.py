"""Nodes look whether plans still fit, and move what does not: by itself, and without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.network.fragments.test_fragments import fragments_at
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually
from typer.testing import CliRunner

from thalweg.adapt.replanning import Policy
from thalweg.cli.main import app
from thalweg.runtime.network.placing.watching import Watcher

STREAMS = {
    "a": "CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT",
    "b": "CREATE STREAM Sold (item BIGINT, shop VARCHAR) TIMESTAMP BY ts BIGINT",
}
QUERY = """CREATE QUERY {} AS SELECT ISTREAM S.shop, B.price
           FROM Bids [Range 20] B, Sold [Range 20] S WHERE B.item = S.item"""
AT_ONCE = Policy(alpha=0.0, pause_s=0.0, rest_s=0.0)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c")}
    for name, text in STREAMS.items():
        made[name].cql(text)
    push(made, 1, 20)
    yield made
    for node in made.values():
        node.close()


def push(nodes: dict[str, LiveNode], begin: int, end: int) -> None:
    nodes["a"].push(
        "Bids", *({"ts": t, "item": t % 3, "price": 1.0 * t} for t in range(begin, end))
    )
    nodes["b"].push("Sold", *({"ts": t, "item": t % 3, "shop": "x"} for t in range(begin, end)))


def rates(nodes: dict[str, LiveNode], bids: float, sold: float) -> None:
    """As if so many rows a second had come during the last minute."""
    for name, found in (("a", {"Bids": bids}), ("b", {"Sold": sold})):
        nodes[name].node.meter.rows_per_s = lambda f=found: f  # type: ignore[method-assign, misc]


def test_a_join_follows_the_stream_with_more_rows(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    rates(nodes, 1_000.0, 10.0)
    c.cql(QUERY.format("sales"), "edge")
    c.cql(QUERY.format("whole"), "local")
    assert (len(fragments_at(a)), len(fragments_at(b))) == (1, 0)
    push(nodes, 20, 60)  # until then, windows hold less than they will when they begin elsewhere
    eventually(lambda: bool(c.rows("sales")) and c.rows("sales")[-1]["ts"] == 58)
    watcher = Watcher(c.node, None, AT_ONCE)
    assert watcher.look(0.0) == []
    assert watcher.look(1.0) == []  # all is as it was foreseen
    rates(nodes, 10.0, 1_000.0)
    (look,) = watcher.look(2.0)
    assert [m.partition(": ")[2] for m in look.moves] == ["a -> b"]
    assert any(r.startswith("a uses") for r in look.reasons)
    assert "it saves" in look.decision
    push(nodes, 60, 90)
    eventually(lambda: c.http.get("/network/replan").json()["is_over"], 60)
    push(nodes, 90, 120)  # the instant from which on it runs there has come
    eventually(lambda: (len(fragments_at(a)), len(fragments_at(b))) == (0, 1))
    eventually(lambda: bool(c.rows("whole")) and c.rows("whole")[-1]["ts"] == 118)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 118)
    first = min(r["ts"] for r in c.rows("sales"))
    assert [(r["ts"], r["row"]) for r in c.rows("sales") if r["ts"] > first] == [
        (r["ts"], r["row"]) for r in c.rows("whole") if r["ts"] > first
    ]
    assert watcher.look(3.0) == []
    assert watcher.look(4.0) == []
    assert watcher.looks() == [look]
    c.node.watcher = watcher
    told = CliRunner().invoke(app, ["network", "replans", "--url", str(c.http.base_url)])
    assert told.exit_code == 0
    assert "edge: it saves" in told.stdout
    assert "    because a uses" in told.stdout
    assert ": a -> b" in told.stdout


def test_a_move_that_costs_more_than_it_saves_is_not_made(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    rates(nodes, 1_000.0, 10.0)
    c.cql(QUERY.format("sales"), "edge")
    watcher = Watcher(c.node, None, Policy(alpha=0.0, pause_s=0.0, horizon_s=1e-9))
    watcher.look(0.0)
    rates(nodes, 10.0, 1_000.0)
    (look,) = watcher.look(1.0)
    assert look.moves == ()
    assert "moving costs" in look.decision
    assert (len(fragments_at(a)), len(fragments_at(b))) == (1, 0)


def test_a_node_that_comes_is_a_reason_to_plan(nodes: dict[str, LiveNode], tmp_path: Path) -> None:
    c = nodes["c"]
    rates(nodes, 10.0, 10.0)  # measured ones fall while nothing comes: a reason of their own
    c.cql(QUERY.format("sales"), "edge")
    watcher = Watcher(c.node, None, AT_ONCE)
    watcher.look(0.0)
    nodes["d"] = LiveNode("d", tmp_path, nodes["a"].shared)
    (look,) = watcher.look(1.0)
    assert look.reasons == ("d has come",)
    assert look.decision == "what runs is what would be planned now"
    assert watcher.look(2.0) == []


def test_nothing_is_looked_at_where_no_query_is_placed(nodes: dict[str, LiveNode]) -> None:
    nodes["c"].cql(QUERY.format("whole"), "local")
    assert Watcher(nodes["c"].node, None, AT_ONCE).look(0.0) == []
