"""Nodes as peers: the same CQL, the reference's rows, whoever is asked and whoever fails."""

import pytest
from tests.runtime.peers.nodes import Peers
from tests.runtime.peers.workload import QUERIES, STREAMS, Rows
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine.reference import evaluate

SOURCES = {"X": ("n1", "n2", "n3"), "Y": ("n2", "n4"), "Z": ("n4",)}
END = 200


def begin(peers, queries=QUERIES):
    """Streams at n1, a query at each node, and all sources known before time goes on."""
    peers.cql("n1", STREAMS)
    for number, (name, text) in enumerate(queries.items()):
        peers.cql(f"n{number % 4 + 1}", f"CREATE QUERY {name} AS {text}")
    for stream, nodes in SOURCES.items():
        for node in nodes:
            peers.push(node, stream, [])


def push(peers, rows, low, high, count=12, left_out=()):
    for stream, nodes in SOURCES.items():
        for node in nodes:
            if node not in left_out:
                drawn = rows.draw(node, stream, low, high, count)
                done = peers.push(node, stream, drawn, f"{low}")
                assert done["late"] == done["rejected"] == 0


def end(peers):
    for stream, nodes in SOURCES.items():
        for node in nodes:
            peers.promise(node, stream, END)


def judge(peers, rows, queries=QUERIES):
    for number, (name, text) in enumerate(queries.items()):
        asker = f"n{number % 4 + 1}"
        peers.await_final(asker, name, END - 1)
        expected = rows.expected(text, END)
        assert expected, f"{name} has nothing to say"
        # By another node than the one that was asked: each answers for all.
        assert peers.said("n1", name) == expected, name


def test_the_same_cql_gives_the_references_rows_at_any_node(tmp_path):
    rows = Rows(1)
    with Peers(tmp_path, 4) as peers:
        begin(peers)
        for low in range(0, 60, 20):
            push(peers, rows, low, low + 20)
        end(peers)
        judge(peers, rows)
        told = peers.ask("n2", "GET", "/queries/chain/explain").text
        assert peers.ask("n1", "GET", "/queries/chain/placed").text == told
        moved = peers.ask("n1", "POST", "/network/moves", json={"what": "chain", "to": "n3"})
        assert (moved.status_code, "nothing of it moves" in moved.text) == (409, True)
        for header in ("thalweg-movable", "thalweg-spread"):
            asked = {"headers": {header: "1"}, "json": {"cql": "SELECT a FROM X [Now]"}}
            refused = peers.ask("n1", "POST", "/queries", **asked)
            assert (refused.status_code, "the ring decides" in refused.text) == (409, True)
        assert "type 2" in told
        assert "join 0: Y by Y.b, Z by Z.b" in told
        assert "planned by rates: not known, taken as equal" in told
        assert "n4" in told
        rows = {q["name"]: q["streams"] for q in peers.ask("n1", "GET", "/queries").json()}
        assert rows["pair"] == ["X", "Y"]
        body = f"CREATE QUERY again AS {QUERIES['three']}".encode()
        would = peers.ask("n3", "POST", "/explain", content=body).text
        assert "type 1" in would
        body = f"CREATE QUERY later AS {QUERIES['chain']}".encode()
        would = peers.ask("n3", "POST", "/explain", content=body).text
        assert "planned by rates: measured, tuples an instant: X " in would
        assert {q["name"] for q in peers.ask("n3", "GET", "/queries").json()} == set(QUERIES)


@pytest.mark.parametrize("copies", [0, 1])
def test_a_node_that_crashes_and_comes_back_costs_no_row(tmp_path, copies):
    """It is a source, an asker and an owner of values at once."""
    rows = Rows(2 + copies)
    with Peers(tmp_path, 5, copies) as peers:
        begin(peers)
        push(peers, rows, 0, 20)
        peers.crash("n3")
        push(peers, rows, 20, 40, left_out=("n3",))
        peers.start("n3")
        # What was acknowledged counts once, however often it is pushed.
        again = [{"ts": t, "a": v[0], "b": v[1]} for t, v in rows.pushed["n3", "X"]]
        assert peers.push("n3", "X", again, "0")["repeated"]
        push(peers, rows, 40, 60)
        end(peers)
        judge(peers, rows)


def test_what_peers_cannot_do_is_refused_with_the_reason_and_who_can(tmp_path):
    with Peers(tmp_path, 1) as peers:
        peers.cql("n1", STREAMS)
        for text, reason in (
            ("SELECT X.a FROM X [Range 5], Y [Range 5] WHERE X.a < Y.a", "no equality"),
            ("SELECT X.a FROM X [Rows 5], Y [Range 5] WHERE X.a = Y.a", "Rows window"),
            ("SELECT X.a FROM X, Y [Range 5] WHERE X.a = Y.a", "unbounded"),
            ("SELECT a, COUNT(*) AS n FROM X [Range 5] GROUP BY a", "one stream"),
            ("SELECT COUNT(*) AS n FROM X [Range 5], Y [Range 5] WHERE X.a = Y.a", "GROUP BY"),
            ("CREATE TABLE T (a BIGINT)", "has one home"),
            ("CREATE STREAM W (a BIGINT) TIMESTAMP BY ts FROM 'jsonl:x'", "not from"),
            ("INSERT INTO X (ts, a, b) VALUES (1, 2, 3)", "push"),
        ):
            answer = peers.ask("n1", "POST", "/queries", json={"cql": text})
            assert answer.status_code == 422, (text, answer.text)
            assert reason in answer.json()["detail"], (text, answer.json()["detail"])
        assert peers.ask("n1", "GET", "/queries").json() == []


def test_eager_rows_come_before_they_are_final_and_are_combinations(tmp_path):
    text = QUERIES["pair"]
    rows = Rows(5)
    with Peers(tmp_path, 3) as peers:
        peers.cql("n1", STREAMS)
        peers.cql("n2", f"CREATE QUERY early AS {text}", eager=True)
        refused = peers.ask(
            "n2",
            "POST",
            "/queries",
            json={"cql": QUERIES["counted"]},
            headers={"thalweg-eager": "1"},
        )
        assert "without --eager" in refused.json()["detail"]
        for stream, node in (("X", "n1"), ("Y", "n3")):
            eventually(lambda node=node: peers.nodes[node].node.peers.role()["queries"] != [])
            peers.push(node, stream, rows.draw(node, stream, 0, 20, 15))
        # The changelog is netted; these are not.
        expected = [
            (x[0], x[1], y[1])
            for x_ts, x in rows.pushed["n1", "X"]
            for y_ts, y in rows.pushed["n3", "Y"]
            if x[0] == y[0] is not None and max(x_ts, y_ts) <= min(x_ts + 12, y_ts + 8)
        ]
        eventually(lambda: len(peers.said("n2", "early")) == len(expected))
        assert sorted(row for _, _, row in peers.said("n2", "early")) == sorted(expected)
        assert peers.ask("n2", "GET", "/queries/early/explain").text.count("at once") == 1
        told = peers.ask("n2", "GET", "/queries/early/results?format=json").json()
        assert told["possibly_incomplete"]


def test_idle_sources_let_the_others_go_on_and_what_comes_behind_is_late(tmp_path):
    streams = """CREATE STREAM X (a BIGINT) TIMESTAMP BY ts IDLE 300 MILLISECONDS;
                 CREATE STREAM Y (a BIGINT) TIMESTAMP BY ts IDLE 300 MILLISECONDS"""
    text = "SELECT X.a FROM X [Range 5], Y [Range 5] WHERE X.a = Y.a"
    with Peers(tmp_path, 3) as peers:
        peers.cql("n1", streams)
        peers.cql("n1", f"CREATE QUERY q AS {text}")
        for node, stream in (("n1", "X"), ("n2", "X"), ("n3", "Y")):
            peers.push(node, stream, [])
        peers.push("n1", "X", [{"ts": 10, "a": 1}, {"ts": 40, "a": 2}])
        peers.push("n3", "Y", [{"ts": 12, "a": 1}])
        # n2 has said nothing, and Y nothing behind 12: both are silent for long.
        peers.await_final("n1", "q", 40)
        assert peers.said("n1", "q") == [(12, "+", (1,)), (16, "-", (1,))]
        assert peers.push("n3", "Y", [{"ts": 39, "a": 2}])["late"] == 1
        late = peers.ask("n3", "GET", "/streams/Y/late").text
        assert '"ts": 39' in late


def test_streams_and_queries_end_where_they_are_dropped_and_names_are_free(tmp_path):
    with Peers(tmp_path, 2) as peers:
        peers.cql("n1", STREAMS)
        peers.cql("n2", f"CREATE QUERY pair AS {QUERIES['pair']}")
        eventually(lambda: "pair" in peers.nodes["n1"].node.directory.defined())
        peers.push("n2", "X", [{"ts": 1, "a": 1, "b": 1}], "first")
        refused = peers.ask("n1", "DELETE", "/streams/X")
        assert refused.status_code == 422, refused.text
        assert "used by query pair" in refused.text
        assert peers.ask("n1", "DELETE", "/queries/pair").status_code == 204
        eventually(lambda: peers.nodes["n1"].node.peers.role()["queries"] == [])
        assert peers.nodes["n2"].node.peers.standing() == []
        eventually(lambda: peers.ask("n1", "DELETE", "/streams/X").status_code == 204)
        for node in peers.nodes.values():
            eventually(lambda node=node: left_of("X", node.node.peers) == [])
        eventually(lambda: any(left_of("Y", n.node.peers) for n in peers.nodes.values()))
        peers.cql("n2", "CREATE STREAM X (other VARCHAR) TIMESTAMP BY ts")
        rows = peers.ask("n1", "GET", "/streams").json()
        assert {(r["name"], r["node"]) for r in rows} == {("X", "n2"), ("Y", "n1"), ("Z", "n1")}


def left_of(stream, peers):
    """Registers, sources, copies and batches of a stream at one node."""

    def find(stack):
        index, groups = stack["p2p-index"], stack["p2p-streams"].groups
        had = [s.stream for s in index.sources.sources.values()]
        had += [log.stream for log in index.copies.logs.values()]
        had += [found.stream for found in index.sources.buried.values()]
        return [id_ for id_ in [*groups, *had] if id_.startswith(f"{stream}#")]

    return peers.read(find)


@pytest.mark.parametrize("count", [1, 2])
def test_a_network_that_was_stopped_goes_on(tmp_path, count):
    rows = Rows(9)
    asked = {"pair": QUERIES["pair"]}
    last = f"n{count}"
    with Peers(tmp_path, count) as peers:
        peers.cql("n1", STREAMS)
        peers.cql("n1", f"CREATE QUERY pair AS {asked['pair']}")
        for low in (0, 20):
            for node, stream in (("n1", "X"), (last, "Y")):
                done = peers.push(node, stream, rows.draw(node, stream, low, low + 20, 9))
                assert done["accepted"] == 9
            peers.stop_all()
            peers.start_all()
        for node, stream in (("n1", "X"), (last, "Y")):
            peers.promise(node, stream, END)
        judge(peers, rows, asked)


def test_values_of_all_types_come_back_as_they_went(tmp_path):
    streams = """
    CREATE STREAM L (k VARCHAR, at TIMESTAMP, day DATE, price DECIMAL(10, 2), ok BOOLEAN)
      TIMESTAMP BY at;
    CREATE STREAM R (k VARCHAR, at TIMESTAMP) TIMESTAMP BY at"""
    text = """SELECT L.k, L.at, L.day, L.price, L.ok FROM L [Range 10 SECONDS], R [Range 10 SECONDS]
              WHERE L.k = R.k AND L.day >= DATE '2026-01-01'"""
    with Peers(tmp_path, 2) as peers:
        peers.cql("n1", streams)
        peers.cql("n2", f"CREATE QUERY typed AS {text}")
        for node, stream in (("n1", "L"), ("n2", "R")):
            peers.push(node, stream, [])
        left = {"k": "é", "at": "2026-03-01T10:00:00", "day": "2026-03-01", "price": "12.30"}
        peers.push("n1", "L", [{**left, "ok": True}, {**left, "ok": None, "day": "2025-01-01"}])
        peers.push("n2", "R", [{"k": "é", "at": "2026-03-01T10:00:01"}])
        for node, stream in (("n1", "L"), ("n2", "R")):
            answer = peers.ask(
                node, "POST", f"/streams/{stream}/heartbeat", json={"at": "2026-03-01T11:00:00"}
            )
            assert answer.is_success
        eventually(lambda: len(peers.said("n2", "typed")) == 2)
        (_, plus, row), _ = peers.said("n2", "typed")
        assert plus == "+"
        assert [str(v) for v in row] == ["é", "2026-03-01T10:00:00", "2026-03-01", "12.3", "True"]


def test_the_judge_sees_a_missing_row():
    rows = Rows(1)
    rows.draw("n1", "X", 0, 20, 12)
    rows.draw("n2", "Y", 0, 20, 12)
    (query,) = compile_script(f"{STREAMS}; {QUERIES['pair']}").queries
    whole = rows.expected(QUERIES["pair"], END)
    del rows.pushed["n2", "Y"][3]
    assert whole != rows.expected(QUERIES["pair"], END)
    assert evaluate(query.plan, {"X": [], "Y": []}) == []
