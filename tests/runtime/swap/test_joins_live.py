"""A join across live nodes, in whatever order: no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.swap.joining import STREAMS, THREE_WAY, expected, push, said, submit, submitted
from tests.runtime.waiting import eventually

QUERIES = {
    "a filter at a home, and a comparison between streams": (
        "SELECT R.a, S.y, T.z FROM R [Range 12] R, S [Range 7] S, T [Now] T "
        "WHERE R.a = S.a AND S.b = T.b AND R.x > 0.5 AND S.y <> T.z"
    ),
    "an aggregate above": (
        "SELECT S.b, COUNT(*) AS n, MAX(R.x) AS top FROM R [Range 12] R, S [Range 7] S, "
        "T [Range 9] T WHERE R.a = S.a AND S.b = T.b GROUP BY S.b"
    ),
    "a stream, with duplicates left out": (
        "SELECT ISTREAM DISTINCT R.a FROM R [Range 12] R, S [Range 7] S WHERE R.a = S.a"
    ),
    "rows that stay for ever": (
        "SELECT R.a, S.y FROM R [Unbounded] R, S [Now] S WHERE R.a = S.a AND R.x > 2.5"
    ),
    "a stream that is read twice": (
        "SELECT R.x, A.y, B.y AS other FROM R [Range 5] R, S [Range 7] A, S [Range 3] B "
        "WHERE R.a = A.a AND R.a = B.a AND A.y < B.y"
    ),
    "an aggregate of all, over streams that have not begun": (
        "SELECT COUNT(*) AS n FROM R [Range 12] R, S [Range 7] S WHERE R.a = S.a"
    ),
}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    # As ports are: in another order than names, so that nobody takes the one for the other.
    addresses = {"a": "h:9", "b": "h:1", "c": "h:5", "d": "h:7"}
    made = {n: LiveNode(n, tmp_path, shared, address=at) for n, at in addresses.items()}
    for node, text in zip(made.values(), STREAMS.values(), strict=False):
        node.cql(text)
    yield made
    for node in made.values():
        node.close()


def test_streams_at_three_nodes_are_joined_as_on_one(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    submitted(d, THREE_WAY)
    for number, select in enumerate(QUERIES.values()):
        submitted(d, select, f"q{number}")
    push(d, 1, 30)
    push(d, 30, 60)
    eventually(lambda: said(d) == expected(THREE_WAY, 60))
    for number, (about, select) in enumerate(QUERIES.items()):
        found = expected(select, 60)
        assert found, about
        eventually(lambda n=number, f=found: said(d, f"q{n}") == f, 30)  # type: ignore[misc]


def test_a_late_query_begins_with_what_windows_hold(nodes: dict[str, LiveNode]) -> None:
    """At the latest instant that its streams have come to."""
    a, _, _, d = nodes.values()
    for stream in "RST":
        kept = f"CREATE QUERY k{stream} AS SELECT * FROM {stream} [Range 20]"
        a.cql(kept)  # so that something of the past is there
    push(d, 1, 40)
    eventually(lambda: all(a.rows(f"k{s}") for s in "RST"))
    homes = dict(zip("RST", nodes.values(), strict=False))
    eventually(lambda: all(n.node.site.engine.watermark(s) >= 39 for s, n in homes.items()))
    submitted(d, THREE_WAY)
    push(d, 40, 60)
    whole = expected(THREE_WAY, 60)
    held: dict[tuple[object, ...], int] = {}
    for ts, op, row in whole:
        if ts <= 39:
            held[row] = held.get(row, 0) + (1 if op == "+" else -1)
    begun = [(39, "+", row) for row, count in held.items() for _ in range(count)]
    wanted = sorted([*begun, *(c for c in whole if c[0] > 39)], key=repr)
    assert begun
    eventually(lambda: said(d) == wanted)


def test_explain_draws_the_join_graph_with_shares_by_route(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    submitted(d, THREE_WAY)
    push(d, 1, 40)
    eventually(lambda: said(d) == expected(THREE_WAY, 40))
    text = nodes["a"].http.get("/queries/q/placed").text
    for line in (
        "placed by swap:",
        "node a partial: R.a = S.a (delegated here: R)",
        "└─ joined across a, b, c: final up to 39",
        "a (partial): R.a = S.a (at home here: R)",
        "b (self-contained): reads S",
        "c (partial): S.b = T.b (at home here: T)",
        "RMO to a: ",
        "RMO to c: ",
        "gives results: ",
    ):
        assert line in text, text
    told = d.http.get("/queries/q/placed", params={"format": "json"}).json()
    (join,) = [i["join"] for i in told["inputs"]]
    (b,) = join["parts"]["b"]["nodes"]
    assert sum(way["rows"] for way in b["ways"]) == 38  # the last is not final yet
    results = sum(n["results"] for p in join["parts"].values() for n in p["nodes"])
    assert results >= sum(c[1] == "+" for c in expected(THREE_WAY, 40))
    for path in ("/network", "/network/check", "/network/links", "/queries", "/network/loads"):
        assert d.http.get(path).is_success, path
    assert d.http.post("/network/replan", json={"dry_run": True}).status_code == 422  # local
    headers = {"thalweg-strategy": "edge"}
    asked = d.http.post("/network/replan", json={"dry_run": True}, headers=headers)
    assert asked.is_success, asked.text
    dropped = nodes["a"].http.post("/queries", json={"cql": "DROP STREAM R"})
    assert not dropped.is_success


def test_rows_choose_their_way_as_they_are_told(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    asked = {"q1": "lottery", "q2": "back-pressure", "q3": "fixed:c,a", "q4": "fixed:a,c"}
    for name, routing in asked.items():
        text = f"CREATE QUERY {name} AS {THREE_WAY}"
        headers = {"thalweg-plan": "swap", "thalweg-routing": routing}
        assert d.http.post("/queries", json={"cql": text}, headers=headers).is_success
    push(d, 1, 40)
    for name in asked:
        eventually(lambda n=name: said(d, n) == expected(THREE_WAY, 40))  # type: ignore[misc]
    for name, first, last in (("q3", "c", "a"), ("q4", "a", "c")):
        text = d.http.get(f"/queries/{name}/placed").text
        assert f"rows choose their way by: fixed:{first},{last}" in text
        assert f"RMO to {first}: 38 rows, 100 %" in text
        assert f"RMO to {last}: 0 rows, 0 %" in text


def test_finished_streams_end_the_join(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    submitted(d, THREE_WAY)
    push(d, 1, 30)
    for stream in "RST":
        assert d.http.post(f"/streams/{stream}/finish").is_success
    eventually(lambda: [c for c in said(d) if c[0] < 29] == expected(THREE_WAY, 30))

    def all_rows_are_gone() -> bool:
        ops = [op for _, op, _ in said(d)]  # those of the last instant may only now have come
        return ops.count("+") == ops.count("-")

    eventually(all_rows_are_gone)


def test_what_is_dropped_is_gone_everywhere(nodes: dict[str, LiveNode]) -> None:
    b, d = nodes["b"], nodes["d"]
    submitted(d, THREE_WAY)
    push(d, 1, 20)
    eventually(lambda: said(d) == expected(THREE_WAY, 20))
    b.close()  # who is away hears it when it is back
    d.cql("DROP QUERY q")
    b.open()
    eventually(lambda: not any(_queries(n) for n in nodes.values()))
    eventually(lambda: not any(n.node.data.publications.names() for n in nodes.values()))
    assert not [s.name for s in d.node.site.catalog.streams()]


def test_nodes_that_crash_and_come_back_lose_and_double_nothing(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, d = nodes.values()
    submitted(d, THREE_WAY)
    push(d, 1, 20)
    for at, node in zip((20, 40, 60, 80), (b, d, a, c), strict=True):
        node.close()  # drivers go without goodbyes: what was not on disk is lost
        others = [n for n in (a, b, c, d) if n is not node]
        for stream, home in zip("RST", (a, b, c), strict=True):
            if home is not node:
                push(others[0], at, at + 10, stream)
        node.open()
        for stream, home in zip("RST", (a, b, c), strict=True):
            if home is node:
                push(node, at, at + 10, stream)
        push(d, at + 10, at + 20)
    eventually(lambda: said(d) == expected(THREE_WAY, 100))


def test_what_swap_cannot_do_is_refused_with_the_way_that_works(
    nodes: dict[str, LiveNode],
) -> None:
    d = nodes["d"]
    for select, why in {
        "SELECT R.a FROM R [Range 5] R, S [Range 5] S WHERE R.a < S.a": "no equality connects",
        "SELECT R.a FROM R [Rows 5] R, S [Range 5] S WHERE R.a = S.a": "R has a window [Rows 5]",
        "SELECT R.a FROM R [Range 6 Slide 3] R, S [Now] S WHERE R.a = S.a": "window that slides",
        "SELECT RSTREAM R.a FROM R [Now] R, S [Now] S WHERE R.a = S.a": "RSTREAM speaks",
        "SELECT R.a FROM R [Now] R": "joins nothing",
    }.items():
        answer = submit(d, select)
        assert answer.status_code == 409, answer.text
        assert why in answer.text
        assert "without --plan swap it runs" in answer.text
    alone = "SELECT A.a FROM R [Now] A, R [Now] B WHERE A.a = B.a"
    assert "all at home at a; submit it there" in submit(d, alone).text
    assert not any(n.node.data.publications.names() for n in nodes.values())
    headers = {"thalweg-plan": "swap", "thalweg-strategy": "edge"}
    both = d.http.post("/queries", json={"cql": f"CREATE QUERY q AS {THREE_WAY}"}, headers=headers)
    assert "one of them" in both.text
    for routing, why in {"best": "there are both, lottery", "fixed:z": "of a, b, c"}.items():
        headers = {"thalweg-plan": "swap", "thalweg-routing": routing}
        wrong = {"cql": f"CREATE QUERY q AS {THREE_WAY}"}
        assert why in d.http.post("/queries", json=wrong, headers=headers).text
    other = d.http.post("/queries", json={"cql": alone}, headers={"thalweg-plan": "swop"})
    assert "there is no plan swop" in other.text


def _queries(node: LiveNode) -> list[str]:
    return node.driver.read(lambda stack: list(stack["swap"].queries))  # type: ignore[attr-defined]


def test_a_stream_that_is_silent_does_not_hold_up_the_others(nodes: dict[str, LiveNode]) -> None:
    """Its home promises that nothing older will come, once the others wait for it."""
    c, d = nodes["c"], nodes["d"]
    c.cql("CREATE STREAM U (a BIGINT) TIMESTAMP BY ts BIGINT IDLE 100 MILLISECONDS")
    submitted(d, "SELECT R.a, U.a AS b FROM R [Range 12] R, U [Range 50] U WHERE R.a = U.a")
    c.push("U", {"ts": 3, "a": 1})
    push(d, 1, 40, "R")
    eventually(lambda: d.http.get("/queries/q").json()["frontier"] == "39")
    assert [row for _, op, row in said(d) if op == "+"]


def test_a_join_that_ended_before_the_first_look_is_tidied_up(nodes: dict[str, LiveNode]) -> None:
    """After a restart, protocols hear of it before streams are read."""
    b, d = nodes["b"], nodes["d"]
    submitted(d, THREE_WAY)
    push(d, 1, 5)
    eventually(lambda: said(d) == expected(THREE_WAY, 5))
    assert b.node.joins is not None
    b.node.joins.close()  # looks no more
    b.shared.down.add("b")  # and is asked for nothing
    d.cql("DROP QUERY q")
    eventually(lambda: not _queries(b))
    assert b.node.data.publications.names()
    b.close()
    b.shared.down.clear()
    b.open()
    eventually(lambda: not b.node.data.publications.names(), 30)
