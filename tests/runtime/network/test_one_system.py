"""Whichever node is asked, the network is one system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

STREAMS = """
CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE TABLE Items (item BIGINT, name VARCHAR, PRIMARY KEY (item));
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c")}
    yield made
    for node in made.values():
        node.close()


def test_a_query_reads_streams_of_other_nodes_and_is_read_anywhere(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT")
    c.cql("INSERT INTO Items VALUES (1, 'vase'), (2, 'clock')")
    done = c.cql(
        "CREATE QUERY sales AS SELECT ISTREAM I.name, B.price FROM Sold [Now] S, "
        "Bids [Range 100] B, Items I WHERE S.item = B.item AND B.item = I.item"
    )
    assert done["queries"] == ["sales"]
    assert [change["node"] for change in done["changes"]] == ["c"]
    b.push("Bids", {"ts": 1, "item": 1, "price": 5.0}, {"ts": 2, "item": 2, "price": 7.5})
    c.push("Sold", {"ts": 3, "item": 2}, {"ts": 4, "item": 1}, {"ts": 50, "item": 9})
    a.push("Bids", {"ts": 50, "item": 3, "price": 1.0})
    for node in (a, b, c):
        eventually(lambda node=node: len(node.rows("sales")) == 2)  # type: ignore[misc]
        assert [(r["name"], r["price"]) for r in node.values("sales")] == [
            ("clock", 7.5),
            ("vase", 5.0),
        ]
        assert node.names("queries") == {"sales": "c"}
        assert node.names("streams") == {"Bids": "a", "Items": "a", "Sold": "b"}


def test_a_script_may_concern_several_nodes(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY dear AS SELECT * FROM Bids [Now] WHERE price > 10")
    done = c.cql(
        "CREATE STREAM Visits (who VARCHAR) TIMESTAMP BY ts BIGINT;\n"
        "INSERT INTO Items VALUES (1, 'vase');\n"
        "DROP QUERY dear;\n"
        "CREATE QUERY seen AS SELECT COUNT(*) AS n FROM Visits [Range 10]"
    )
    told = [(change["did"], change["name"], change["node"]) for change in done["changes"]]
    assert told == [
        ("created", "Visits", "c"),
        ("dropped", "dear", "b"),
        ("created", "seen", "c"),
    ]
    assert a.names("queries") == {"seen": "c"}


def test_a_view_of_another_node_is_read(nodes: dict[str, LiveNode]) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    b.cql("CREATE QUERY many AS SELECT COUNT(*) AS n FROM Dear")
    a.push("Bids", *({"ts": t, "item": t, "price": 5.0 * t} for t in range(1, 6)))
    eventually(lambda: bool(b.rows("many")) and b.values("many")[-1]["n"] == 2)


def test_queries_at_other_nodes_go_over_to_a_view_that_is_replaced(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    b.cql("CREATE QUERY many AS SELECT COUNT(*) AS n FROM Dear")
    done = c.cql("CREATE OR REPLACE VIEW Dear AS SELECT item, price FROM Bids [Range 10]")
    assert [change["name"] for change in done["changes"]] == ["Dear"]
    assert [n for n in done["notes"] if "many at b" in n]
    (view,) = (d for d in a.node.directory.defined().values() if d.name == "Dear")
    eventually(lambda: [v.text for v in b.node.site.catalog.views()] == [view.text])
    a.push("Bids", *({"ts": t, "item": t, "price": 5.0 * t} for t in range(1, 6)))
    eventually(lambda: bool(b.rows("many")) and b.values("many")[-1]["n"] == 4)
    assert a.names("queries") == {"many": "b"}


def test_a_new_query_reads_a_view_as_it_is_now(nodes: dict[str, LiveNode]) -> None:
    """Also where an older query has made its node remember it as it was."""
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    b.cql("CREATE QUERY old AS SELECT COUNT(*) AS n FROM Dear")
    a.cql("CREATE OR REPLACE VIEW Dear AS SELECT item, price * 2 AS price FROM Bids [Range 10]")
    b.cql("CREATE QUERY fresh AS SELECT COUNT(*) AS n FROM Dear")
    b.cql("CREATE QUERY placed AS SELECT item, MAX(price) AS p FROM Dear GROUP BY item", "edge")
    a.push("Bids", *({"ts": t, "item": 1, "price": 5.0 * t} for t in range(1, 6)))
    eventually(lambda: bool(b.rows("fresh")) and b.values("fresh")[-1]["n"] == 4)
    eventually(lambda: bool(b.rows("old")) and b.values("old")[-1]["n"] == 4)
    eventually(lambda: bool(b.rows("placed")) and b.values("placed")[-1]["p"] == 40.0)


def test_placed_queries_go_over_to_a_view_that_is_replaced_also_after_a_restart(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    a.cql("CREATE VIEW Dearest AS SELECT item, MAX(price) AS p FROM Dear GROUP BY item")
    text = "AS SELECT item, p FROM Dearest WHERE item < 9"
    b.cql(f"CREATE QUERY placed {text}", "edge")
    a.cql(f"CREATE QUERY own {text}", "in-network")
    movable = {"cql": f"CREATE QUERY other {text}"}
    a.http.post("/queries", json=movable, headers={"thalweg-movable": "1"}).raise_for_status()
    b.close()
    a.cql("CREATE OR REPLACE VIEW Dear AS SELECT item, -price AS price FROM Bids [Range 10]")
    b.open()
    eventually(lambda: not b.node._views_read.behind() and not a.node._views_read.behind())
    a.push("Bids", *({"ts": t, "item": 1, "price": 5.0 * t} for t in range(1, 6)))
    for query in ("placed", "own", "other"):
        eventually(lambda query=query: len(c.rows(query)) > 1)  # type: ignore[misc]
        assert [row["p"] for row in c.values(query)[1:]] == [-5.0], "behind an end mark"


def each(node: LiveNode, *texts: str) -> list[dict[str, Any]]:
    """Statements as the command hands them in: each for itself."""
    pieces = [{"cql": text, "name": f"{i}.cql"} for i, text in enumerate(texts)]
    answer = node.http.post("/queries/bulk", json={"texts": pieces})
    assert answer.is_success, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_statements_in_a_batch_mean_what_they_mean_in_the_whole_network(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    b.cql("CREATE QUERY top AS SELECT MAX(price) AS p FROM Dear")
    b.cql("SELECT item FROM Dear")  # q1
    rough = "SELECT item, price FROM Bids [Range 20] TOLERANCE price 50 PERCENT PER item"
    dropped, taken, replaced, fine, bare = each(
        a,
        "DROP VIEW Dear",
        "CREATE STREAM top (x BIGINT) TIMESTAMP BY ts",
        "CREATE OR REPLACE VIEW Dear AS SELECT item FROM Bids [Range 10]",
        "CREATE VIEW Cheap AS SELECT item FROM Bids [Now] WHERE price < 3",
        rough,
    )
    (stream,) = each(a, "DROP STREAM Bids")
    told = stream["errors"][0]["message"]
    assert told.startswith('"Bids" is still used by view Dear')
    assert "query top, query q1" in told
    assert "pub/" not in told
    assert "still used by query top, query q1" in dropped["errors"][0]["message"]
    assert "already is a query" in taken["errors"][0]["message"]
    assert "query top could not stand on it" in replaced["errors"][0]["message"]
    assert fine["created"] == ["Cheap"]
    assert bare["queries"] == ["q2"]
    (made,) = each(b, f"CREATE QUERY few AS {rough}")
    assert made["queries"] == ["few"]
    assert b.node.site.catalog.find("due/Bids") is not None


def test_it_is_said_that_a_placed_query_that_is_replaced_runs_whole(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY top AS SELECT item, MAX(price) AS p FROM Bids [Now] GROUP BY item", "edge")
    done = b.cql("CREATE OR REPLACE QUERY top AS SELECT item FROM Bids [Now]", "edge")
    assert [n for n in done["notes"] if "runs whole at b now; it was placed by edge" in n]


def test_a_query_over_due_rows_may_read_them_through_a_view_of_another_node(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    rough = "SELECT item, price FROM Bids [Range 20] TOLERANCE price {} PERCENT PER item"
    a.cql(f"CREATE VIEW Rough AS {rough.format(50)}")
    b.cql("CREATE QUERY few AS SELECT item, price FROM Rough WHERE item > 0")
    assert b.node.site.catalog.find("due/Bids") is not None
    a.cql(f"CREATE OR REPLACE VIEW Rough AS {rough.format(200)}")
    eventually(lambda: not b.node._views_read.behind())
    a.push("Bids", *({"ts": t, "item": 1, "price": 5.0 * t} for t in range(1, 6)))
    eventually(lambda: len(b.rows("few")) == 3)
    assert [row["price"] for row in b.values("few")[1:]] == [5.0, 20.0], "behind an end mark"


def test_a_view_that_a_query_elsewhere_could_not_stand_on_is_not_replaced(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    a.cql("CREATE VIEW Dear AS SELECT item, price FROM Bids [Range 10] WHERE price > 10")
    b.cql("CREATE QUERY top AS SELECT MAX(price) AS p FROM Dear")
    text = "CREATE OR REPLACE VIEW Dear AS SELECT item FROM Bids [Range 10]"
    answer = a.http.post("/queries", json={"cql": text})
    assert answer.status_code == 422
    assert "query top could not stand on it" in answer.json()["detail"]


def test_what_nothing_reads_any_more_is_not_sent(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql(
        "CREATE QUERY one AS SELECT * FROM Bids [Now]; CREATE QUERY two AS SELECT * FROM Bids [Now]"
    )
    assert a.http.get("/network/publications").json() == ["pub/Bids>b.1"]
    c.cql("DROP QUERY one")
    assert a.http.get("/network/publications").json() == ["pub/Bids>b.1"]
    c.cql("DROP QUERY two")
    assert a.http.get("/network/publications").json() == []
    assert b.node.site.catalog.definitions == {}
    a.http.delete("/streams/Bids").raise_for_status()


def test_a_node_that_is_down_is_told_later_what_is_not_read_any_more(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY dear AS SELECT * FROM Bids [Now] WHERE price > 10")
    b.shared.down.add("a")
    b.cql("DROP QUERY dear")
    assert a.node.data.publications.names() == ["pub/Bids>b.1"], "it was not asked"
    b.shared.down.clear()
    b.node.mirrors.give_back(())
    assert a.node.data.publications.names() == []


def test_bare_queries_get_names_that_nobody_has(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    names = [n.cql("SELECT COUNT(*) AS n FROM Bids [Range 5]")["queries"][0] for n in (a, b, c)]
    assert len(set(names)) == 3
    assert set(a.names("queries")) == set(names)


def test_a_mistake_changes_nothing_and_points_into_the_text(nodes: dict[str, LiveNode]) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    answer = b.http.post("/queries", content="CREATE QUERY q AS\nSELECT prise FROM Bids [Now]")
    assert answer.status_code == 422
    assert "2:8" in answer.json()["detail"]
    assert "price" in answer.json()["detail"]
    taken = b.http.post("/queries", content="CREATE STREAM Bids (x BIGINT) TIMESTAMP BY ts")
    assert "already is a stream" in taken.json()["detail"]
    assert a.http.get("/network/publications").json() == []
    assert b.node.site.catalog.definitions == {}


def test_a_node_that_is_away_is_named(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY q AS SELECT * FROM Bids [Now]")
    a.push("Bids", {"ts": 1, "item": 1, "price": 2.0}, {"ts": 5, "item": 1, "price": 2.0})
    eventually(lambda: len(c.rows("q")) == 2)
    a.close()
    answer = c.http.post("/queries", content="SELECT * FROM Bids [Now]")
    assert answer.status_code == 503
    assert "Bids is at node a" in answer.json()["detail"]
    assert "node a at" in c.http.post("/streams/Bids/tuples", json=[]).json()["detail"]
    states = {row["name"]: row["state"] for row in c.http.get("/streams").json()}
    assert states["Bids"] == "unknown"
    links = {n["name"]: n for n in c.http.get("/network").json()["nodes"]}
    eventually(lambda: "a can't be reached" in str(c.http.get("/network").json()))
    assert links["b"]["answers"]
    assert not links["a"]["answers"]
    a.open()
    a.push("Bids", {"ts": 9, "item": 2, "price": 3.0})
    eventually(lambda: len(c.rows("q")) == 4)


def test_a_query_may_run_where_most_of_its_input_is(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT")
    a.push("Bids", *({"ts": t, "item": t, "price": 1.0} for t in range(20)))
    b.push("Sold", {"ts": 1, "item": 1})
    join = "SELECT ISTREAM B.item FROM Bids [Range 9] B, Sold [Now] S WHERE B.item = S.item"
    near = {"thalweg-strategy": "home"}
    text = f"CREATE QUERY one AS {join}; CREATE QUERY two AS SELECT * FROM Sold [Now]"
    c.http.post("/queries", json={"cql": text}, headers=near).raise_for_status()
    c.cql(f"CREATE QUERY three AS {join}")
    assert c.names("queries") == {"one": "a", "two": "b", "three": "c"}
    wrong = c.http.post("/queries", content=join, headers={"thalweg-strategy": "best"})
    assert "there is no strategy best" in wrong.json()["detail"]


def test_a_node_may_be_asked_through_another(nodes: dict[str, LiveNode]) -> None:
    a, b, _ = nodes.values()
    a.http.post("/queries", content=STREAMS, headers={"thalweg-at": "b"}).raise_for_status()
    assert b.names("streams") == {"Bids": "b", "Items": "b"}
    unknown = a.http.get("/queries", headers={"thalweg-at": "z"})
    assert unknown.status_code == 404
    assert "node" in unknown.json()["detail"]


def test_explain_says_where_a_query_runs_and_what_it_waits_for(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY q AS SELECT * FROM Bids [Range 5]; CREATE QUERY r AS SELECT * FROM Bids")
    a.push("Bids", {"ts": 1, "item": 1, "price": 2.0}, {"ts": 5, "item": 1, "price": 2.0})
    eventually(lambda: "1 row so far" in c.http.get("/queries/q/placed").text)
    text = c.http.get("/queries/q/placed").text
    assert "q at node b" in text
    assert "Bids from a: final up to 5" in text
    assert "replayable" in text
    # From the landing at a on, with the way to b.
    (told,) = [q for q in c.http.get("/queries").json() if q["name"] == "q"]
    assert told["pr"] > told["cpr"] > 0
    assert told["delay_ms"] > 0
    assert "between them" in text
    assert "lossy" in c.http.get("/queries/r/placed").text
    a.close()
    eventually(lambda: "waits: a can't be reached" in c.http.get("/queries/q/placed").text)
    a.open()


def arrived(node: LiveNode, stream: str) -> int:
    links = node.http.get("/network/links").json()
    return next(int(link["arrived"]) for link in links if link["stream"] == stream)


def settled(home: LiveNode, reader: LiveNode, stream: str) -> None:
    """Both have come as far, so that queries begin at the same instant."""
    home.node.site.settle()
    if reader.node.site.catalog.find(stream) is not None:
        there, here = home.node.site.engine, reader.node.site.engine
        eventually(lambda: here.watermark(stream) == there.watermark(stream))


def test_only_rows_that_somebody_wants_are_sent(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY dear AS SELECT ISTREAM item FROM Bids [Range 5] WHERE price > 90.0")
    c.cql("CREATE QUERY ten AS SELECT ISTREAM price FROM Bids [Now] WHERE item IN (3, 4)")
    a.push("Bids", *({"ts": t, "item": t % 10, "price": float(t)} for t in range(101)))
    eventually(lambda: len(b.rows("dear")) == 9)  # 91 to 99: the last one may not be the last
    eventually(lambda: len(c.rows("ten")) == 20)
    assert arrived(b, "Bids") == 9
    assert arrived(c, "Bids") == 20
    assert "rows where price > 90.0" in a.http.get("/queries/dear/placed").text


@pytest.mark.parametrize("kind", ["stream", "relation"])
def test_a_later_query_that_wants_other_rows_has_the_past_of_its_windows(
    nodes: dict[str, LiveNode], kind: str
) -> None:
    a, b, _ = nodes.values()
    window = " [Range 30]" if kind == "stream" else ""
    a.cql(f"CREATE {kind.upper()} X (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT")
    a.cql(f"CREATE QUERY keeps AS SELECT COUNT(*) AS n FROM X{window}")
    more = {} if kind == "stream" else {"op": "+"}

    def push(*instants: int) -> None:
        a.push("X", *({"ts": t, "k": t % 4, "v": t, **more} for t in instants))

    conditions = ["k = 1", "k = 2", "k < 2 AND v > 5", "k = 1", "v > 0"]
    for number, condition in enumerate(conditions):
        push(*range(10 * number, 10 * number + 10))
        settled(a, b, "X")
        for node, name in ((a, f"here{number}"), (b, f"there{number}")):
            node.cql(
                f"CREATE QUERY {name} AS SELECT k, COUNT(*) AS n, MAX(v) AS top "
                f"FROM X{window} WHERE {condition} GROUP BY k"
            )
        if number == 2:
            b.close()
            b.open()
    push(*range(50, 60), 200)

    def said(node: LiveNode, query: str) -> list[tuple[object, ...]]:
        return [(r["ts"], r["op"], *r["row"].values()) for r in node.rows(query) if r["ts"] < 59]

    for number in range(len(conditions)):
        eventually(
            lambda n=number: said(a, f"here{n}") == said(b, f"there{n}") != []  # type: ignore[misc]
        )
    eventually(lambda: len(a.http.get("/network/publications").json()) == 1)


def test_a_select_is_answered_by_the_node_that_has_what_it_reads(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    a.cql("INSERT INTO Items VALUES (1, 'vase'), (2, 'clock')")
    b.cql("CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT")
    found = c.http.post("/query", content="SELECT name FROM Items WHERE item = 2").json()
    assert [row["name"] for row in found["rows"]] == ["clock"]
    assert "Items" in c.http.post("/explain", content="SELECT * FROM Items").text
    both = c.http.post(
        "/query", content="SELECT * FROM Items I, Sold [Now] S WHERE I.item = S.item"
    )
    assert "items at a, sold at b" in both.json()["detail"]
    assert c.http.post("/apply", json={"texts": []}).status_code == 409


def test_a_node_that_still_has_something_does_not_leave(nodes: dict[str, LiveNode]) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY q AS SELECT * FROM Bids [Now]")
    refused = b.http.post("/network/leave")
    assert refused.status_code == 409
    assert "b still has query q" in refused.json()["detail"]
    assert a.http.get("/network/publications").json() == ["pub/Bids>b.1"]
    b.node.directory.leave()  # as if it had: what is kept for it goes
    assert a.http.get("/network/publications").json() == []
    b.node.directory.shared.infos["b"] = b.node.directory.me  # type: ignore[attr-defined]


def test_more_rows_of_a_stream_that_ends_without_any(nodes: dict[str, LiveNode]) -> None:
    a, b, _ = nodes.values()
    a.cql(STREAMS)
    b.cql("CREATE QUERY some AS SELECT * FROM Bids [Now] WHERE item = 1")
    b.cql("CREATE QUERY more AS SELECT * FROM Bids [Now] WHERE item = 2")
    a.http.post("/streams/Bids/finish").raise_for_status()
    for query in ("some", "more"):
        eventually(
            lambda q=query: b.http.get(f"/queries/{q}").json()["state"] == "finished"  # type: ignore[misc]
        )
