"""A query's operator at several live nodes, each with some buckets: no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival

STREAMS = (
    "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT"
)
QUERY = (
    "CREATE QUERY sales AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS top "
    "FROM Bids [Range 40] B, Sold [Range 15] S WHERE B.item = S.item GROUP BY S.item"
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c")}
    made["a"].cql(STREAMS)
    yield made
    for node in made.values():
        node.close()


def submitted(node: LiveNode, spread: str, text: str = QUERY) -> Any:
    return node.http.post("/queries", json={"cql": text}, headers={"thalweg-spread": spread})


def spread(node: LiveNode, over: str) -> None:
    answer = submitted(node, over)
    assert answer.is_success, answer.text


def bids(low: int, high: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 11, "price": t * 7 % 31} for t in range(low, high)]


def sold(low: int, high: int) -> list[dict[str, Any]]:
    return [{"ts": t, "item": t % 7} for t in range(low, high)]


def push(node: LiveNode, low: int, high: int) -> None:
    node.push("Bids", *bids(low, high))
    node.push("Sold", *sold(low, high))


def expected(high: int) -> list[tuple[Any, ...]]:
    (query,) = compile_script(f"{STREAMS}; {QUERY}").queries
    inputs = {
        name: [
            Arrival(0, row["ts"], place, tuple(v for k, v in row.items() if k != "ts"))
            for place, row in enumerate(rows)
        ]
        for name, rows in (("Bids", bids(1, high)), ("Sold", sold(1, high)))
    }
    found = reference.evaluate(query.plan, inputs)
    return sorted((c.ts, c.op, c.row) for c in found if c.ts < high - 1)


def said(node: LiveNode) -> list[tuple[Any, ...]]:
    return sorted((r["ts"], r["op"], tuple(r["row"].values())) for r in node.rows("sales"))


def parts(node: LiveNode) -> dict[tuple[int, int], str]:
    """Who has which buckets; a part that goes over at this moment is left out."""
    told = node.http.get("/queries/sales/placed", params={"format": "json"}).json()
    return {tuple(i["part"]["buckets"]): i["from"] for i in told["inputs"] if i["part"] is not None}


def test_an_operator_runs_at_several_nodes_each_with_some_buckets(
    nodes: dict[str, LiveNode],
) -> None:
    a, _, c = nodes.values()
    spread(c, "3")
    push(a, 1, 60)
    eventually(lambda: said(c) == expected(60))
    assert parts(c) == {(0, 41): "a", (42, 84): "b", (85, 127): "c"}
    text = c.http.get("/queries/sales/placed").text
    assert "buckets 42 to 84 of the key" in text
    assert "BUCKET" in text  # splits are at the home


def test_buckets_move_with_their_state_while_the_query_runs(nodes: dict[str, LiveNode]) -> None:
    a, _, c = nodes.values()
    spread(c, "b,c/4")
    push(a, 1, 60)
    eventually(lambda: said(c) == expected(60))
    assert list(parts(c).values()) == ["b", "b", "c", "c"]
    asked = {"what": "sales", "to": "a", "buckets": "0-31"}
    answer = c.http.post("/network/moves", json=asked)
    assert answer.is_success, answer.text
    assert len(answer.json()) == 1
    push(a, 60, 90)
    eventually(lambda: list(parts(c).values()) == ["a", "b", "c", "c"])
    eventually(lambda: said(c) == expected(90))
    wrong = c.http.post("/network/moves", json={**asked, "buckets": "0-40"})
    assert wrong.status_code == 409 or wrong.status_code == 400
    assert "in parts (0-31, 32-63, 64-95, 96-127)" in wrong.text


def test_a_query_is_spread_over_other_nodes_while_it_runs(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    spread(c, "b,c")
    push(a, 1, 40)
    eventually(lambda: said(c) == expected(40))
    notes = b.cql("ALTER QUERY sales SPREAD OVER a, b")["notes"]
    assert notes == [
        "sales: buckets 0-63 go from b to a",
        "sales: buckets 64-127 go from c to b",
    ]
    push(a, 40, 60)
    eventually(lambda: list(parts(c).values()) == ["a", "b"])
    eventually(lambda: said(c) == expected(60))
    assert b.cql("ALTER QUERY sales SPREAD OVER a, b")["notes"] == [
        "sales is spread over a, b already"
    ]
    for text, why in {
        "ALTER QUERY sales SPREAD OVER a, b, c": "has 2 parts, too few for 3 nodes",
        "ALTER QUERY sales SPREAD OVER nobody": "nobody",
        "ALTER QUERY nothing SPREAD OVER a": "nothing",
    }.items():
        answer = b.http.post("/queries", json={"cql": text})
        assert answer.is_client_error
        assert why in answer.text


def test_a_node_takes_a_part_beside_one_that_it_has(nodes: dict[str, LiveNode]) -> None:
    a, _, c = nodes.values()
    spread(c, "b,c")
    push(a, 1, 40)
    eventually(lambda: said(c) == expected(40))
    c.cql("ALTER QUERY sales SPREAD OVER b")
    push(a, 40, 60)
    eventually(lambda: list(parts(c).values()) == ["b", "b"])
    eventually(lambda: said(c) == expected(60))

    def read_by_b() -> int:
        return sum(n.startswith("pub/Bids>b.") for n in a.node.data.publications.names())

    eventually(lambda: read_by_b() == 2)  # each part by a name of its own


def test_a_part_whose_node_was_away_goes_on_where_it_was(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    spread(c, "b,c")
    push(a, 1, 40)
    eventually(lambda: said(c) == expected(40))
    b.close()
    push(a, 40, 60)
    b.open()
    push(a, 60, 80)
    eventually(lambda: said(c) == expected(80))


def test_what_cannot_be_spread_is_refused_with_the_reason(nodes: dict[str, LiveNode]) -> None:
    c = nodes["c"]
    keyless = submitted(c, "2", "CREATE QUERY sales AS SELECT COUNT(*) AS n FROM Bids [Range 5]")
    assert keyless.is_client_error
    assert "sales can't be spread: an aggregate without keys has no buckets" in keyless.text
    assert submitted(c, "9").is_client_error
    assert "node" in submitted(c, "b,nobody").text
    assert c.names("queries") == {}
