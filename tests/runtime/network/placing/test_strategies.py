"""Strategies put a query's operators at several nodes, and its rows do not show it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.runtime.network.placing.planning import Limits
from thalweg.runtime.network.placing.strategies import Strategy

STREAMS = {
    "a": "CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT",
    "b": "CREATE STREAM Sold (item BIGINT, shop VARCHAR) TIMESTAMP BY ts BIGINT",
    "c": "CREATE TABLE Items (item BIGINT, name VARCHAR, PRIMARY KEY (item))",
}
QUERY = """SELECT I.name, S.shop, B.price FROM Bids [Range 20] B, Sold [Range 5] S, Items I
           WHERE B.item = S.item AND S.item = I.item AND B.price > 2"""
QUERIES = {
    "joined": f"{QUERY}",
    "streamed": QUERY.replace("SELECT", "SELECT ISTREAM"),
    "counted": QUERY.replace("I.name, S.shop, B.price", "S.shop, COUNT(*) AS n, SUM(B.price) AS p")
    + " GROUP BY S.shop",
    "sliding": QUERY.replace("SELECT", "SELECT RSTREAM"),
}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c", "d")}
    for name, text in STREAMS.items():
        made[name].cql(text)
    made["a"].cql("INSERT INTO Items VALUES (0, 'vase'), (1, 'clock'), (2, 'chair')")
    yield made
    for node in made.values():
        node.close()


def push(nodes: dict[str, LiveNode], begin: int, end: int) -> None:
    a, b = nodes["a"], nodes["b"]
    a.push("Bids", *({"ts": t, "item": t % 4, "price": float(t % 7)} for t in range(begin, end)))
    b.push("Sold", *({"ts": t, "item": t % 3, "shop": "xyz"[t % 2]} for t in range(begin, end, 2)))


def submit(nodes: dict[str, LiveNode], suffix: str, strategies: list[str]) -> None:
    for strategy in strategies:
        text = "; ".join(
            f'CREATE QUERY "{name}-{strategy}-{suffix}" AS {text}' for name, text in QUERIES.items()
        )
        nodes["d"].cql(text, strategy)


def final(node: LiveNode, query: str) -> int:
    mark = node.http.get(f"/queries/{query}").json()["frontier"]
    return -1 if mark is None else int(mark)


@pytest.mark.timeout(300)
def test_all_strategies_give_the_same_rows(nodes: dict[str, LiveNode]) -> None:
    strategies = [s.value for s in Strategy]
    submit(nodes, "early", strategies)
    push(nodes, 1, 40)
    d = nodes["d"]
    eventually(lambda: final(d, "joined-local-early") >= 38, 60)
    submit(nodes, "late", strategies)
    push(nodes, 40, 80)
    for when in ("early", "late"):
        for name in QUERIES:
            for strategy in strategies:
                query = f"{name}-{strategy}-{when}"
                eventually(lambda q=query: final(d, q) >= 78, 60)  # type: ignore[misc]
            shown = {s: said(d, f"{name}-{s}-{when}") for s in strategies}
            starts = {s: next(iter(rows), ("",))[0] for s, rows in shown.items()}
            latest = max(map(int, starts.values()))
            assert len(shown["local"]) > 20
            for strategy, rows in shown.items():
                if when == "early":
                    assert rows == shown["local"], (name, strategy)
                else:  # what a query holds at its start depends on when that was
                    after = [r for r in rows if int(r[0]) > latest]
                    expected = [r for r in shown["local"] if int(r[0]) > latest]
                    assert after == expected, (name, strategy)


def said(node: LiveNode, query: str) -> list[tuple[str, ...]]:
    rows = node.rows(query)
    return [(str(r["ts"]), r["op"], repr(r["row"])) for r in rows if int(r["ts"]) < 78]


def test_operators_run_at_several_nodes_and_go_with_the_query(
    nodes: dict[str, LiveNode],
) -> None:
    nodes["d"].cql(f"CREATE QUERY joined AS {QUERY}", "edge")
    internal = {n: [q.name for q in x.node.site.catalog.queries()] for n, x in nodes.items()}
    fragments = {n for n, names in internal.items() if any(q.startswith("pub/#") for q in names)}
    assert fragments
    assert "d" not in fragments
    assert nodes["d"].names("queries") == {"joined": "d"}
    shown = nodes["b"].http.get("/queries/joined").json()["text"]
    assert shown == f'CREATE QUERY "joined" AS {QUERY}'
    told = nodes["b"].http.get("/queries/joined/placed").text
    assert "placed by edge:" in told
    assert "computes " in told
    assert "replayable" in told or "lossy" in told
    headers = {"thalweg-strategy": "sqpr"}
    plan = nodes["c"].http.post(
        "/network/plan", json={"cql": f"SELECT {QUERY[7:]}"}, headers=headers
    )
    assert [q["node"] for q in plan.json()["queries"]] == ["c"]
    assert plan.json()["traffic_bps"] > 0  # its streams are at home elsewhere
    assert nodes["d"].names("queries") == {"joined": "d"}
    nodes["a"].cql("DROP QUERY joined")
    for node in nodes.values():
        eventually(lambda n=node: not n.node.site.catalog.queries())  # type: ignore[misc]
        eventually(lambda n=node: all(not s.source for s in n.node.site.catalog.streams()))  # type: ignore[misc]


def test_what_does_not_fit_is_refused_with_what_is_short_where(tmp_path: Path) -> None:
    shared = Shared()
    none = Limits(cpu=0.0)
    nodes = [LiveNode(name, tmp_path, shared, none) for name in ("a", "b")]
    try:
        a, b = nodes
        a.cql(STREAMS["a"])
        headers = {"thalweg-strategy": "sqpr"}
        text = "CREATE QUERY dear AS SELECT item FROM Bids [Now] WHERE price > 1"
        answer = b.http.post("/queries", json={"cql": text}, headers=headers)
        assert answer.status_code == 409
        assert "dear: cpu is short at" in answer.json()["detail"]
        assert b.names("queries") == {}
        b.close()
        b.open()
        assert [r.strategy for r in b.node.tasks.refusals()] == ["sqpr"]
    finally:
        for node in nodes:
            node.close()


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[tuple[LiveNode, LiveNode]]:
    """A node of a stream, and one that takes in no more than a query needs."""
    shared = Shared()
    nodes = (
        LiveNode("a", tmp_path, shared, Limits(cpu=0.0)),
        LiveNode("b", tmp_path, shared, Limits(in_bps=300.0)),
    )
    nodes[0].cql(STREAMS["a"])  # a row a second, as long as nothing is known
    yield nodes
    for node in nodes:
        node.close()


def sums(name: str) -> str:
    return f"CREATE QUERY {name} AS SELECT SUM(price) AS {name} FROM Bids [Range 9] GROUP BY item"


def test_of_many_texts_only_those_are_refused_that_do_not_fit(
    narrow: tuple[LiveNode, LiveNode],
) -> None:
    a, b = narrow
    a.cql("CREATE STREAM Other (price DOUBLE) TIMESTAMP BY ts BIGINT")
    other = "CREATE QUERY more AS SELECT SUM(price) AS p FROM Other [Range 9] GROUP BY price"
    texts = [{"cql": t, "name": "<cql>"} for t in (sums("one"), other, sums("again"))]
    headers = {"thalweg-strategy": "sqpr"}
    answer = b.http.post("/queries/bulk", json={"texts": texts}, headers=headers)
    first, second, third = answer.json()["results"]
    assert first["queries"] == ["one"]
    assert second["refused"]
    assert "more: bandwidth in is short at b" in second["errors"][0]["text"]
    assert third["queries"] == ["again"]
    assert b.names("queries") == {"one": "b", "again": "b"}


def test_who_waits_is_admitted_as_soon_as_there_is_room(
    narrow: tuple[LiveNode, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = narrow
    a.cql("CREATE STREAM Other (price DOUBLE) TIMESTAMP BY ts BIGINT")
    other = "CREATE QUERY more AS SELECT SUM(price) AS p FROM Other [Range 9] GROUP BY price"
    b.cql(sums("one"), "sqpr")
    monkeypatch.setattr("thalweg.cli.submit.LOOK_EVERY_S", 0.02)
    run = ["submit", "--strategy", "sqpr", "--wait", "-e", other, "--url", str(b.http.base_url)]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(CliRunner().invoke, app, run)
        eventually(lambda: len(b.node.tasks.refusals()) >= 2)
        assert not waiting.done()
        b.cql("DROP QUERY one")
        answer = waiting.result(60)
    assert answer.exit_code == 0
    assert "waits" not in answer.stdout
    assert "bandwidth in is short at b" in answer.stderr
    assert b.names("queries") == {"more": "b"}


def test_if_a_node_refuses_its_part_nothing_stands(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    publisher = a.data._publisher
    refused = []

    class Refuses:
        def publish(self, *given: object) -> None:
            from thalweg.runtime.data.server import CannotPublish

            refused.append(given)
            raise CannotPublish("there is no room")

        def closed(self) -> None:
            publisher.closed()

    a.data._publisher = Refuses()  # type: ignore[assignment]
    b.data._publisher = c.data._publisher = a.data._publisher
    headers = {"thalweg-strategy": "edge"}
    text = f"CREATE QUERY joined AS {QUERY}"
    answer = d.http.post("/queries", json={"cql": text}, headers=headers)
    assert refused
    assert answer.status_code == 503
    assert "refuses its part: there is no room" in answer.json()["detail"]
    for node in nodes.values():
        eventually(lambda n=node: not n.node.site.catalog.queries())  # type: ignore[misc]
        eventually(lambda n=node: all(not s.source for s in n.node.site.catalog.streams()))  # type: ignore[misc]
