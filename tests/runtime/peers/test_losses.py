"""What peers lack, and that they say it: sources without copies that are gone, too little room."""

import os
from collections import Counter

import pytest
from tests.runtime.peers.nodes import Peers
from tests.runtime.peers.workload import QUERIES, STREAMS, Rows, combinations, net_of
from tests.runtime.waiting import eventually

END = 200


def test_what_is_missing_is_what_is_reported_when_a_source_is_lost_for_good(tmp_path):
    rows = Rows(21)
    sources = {"X": ("n2", "n3"), "Y": ("n4",)}

    def push(low, away=()):
        for stream, nodes in sources.items():
            for node in nodes:
                if node not in away:
                    peers.push(node, stream, rows.draw(node, stream, low, low + 20, 12))

    with Peers(tmp_path, 4) as peers:  # nobody has copies
        peers.cql("n1", STREAMS)
        peers.cql("n1", f"CREATE QUERY pair AS {QUERIES['pair']}")
        for stream, nodes in sources.items():
            for node in nodes:
                peers.push(node, stream, [])
        push(0)
        peers.await_final("n1", "pair", 8)
        peers.crash("n3")
        push(20, away=("n3",))
        assert peers.ask("n1", "GET", "/queries/pair").json()["error"] is None
        forget = {"method": "POST", "path": "/network/forget", "json": {"node": "n3"}}
        eventually(lambda: peers.ask("n2", **forget).is_success)  # once it counts as down

        def lost():
            told = peers.ask("n1", "GET", "/queries/pair/results?format=json").json()
            return told.get("lost", [])

        eventually(lambda: lost() != [])
        push(40, away=("n3",))
        for stream, node in (("X", "n2"), ("Y", "n4")):
            peers.promise(node, stream, END)
        peers.await_final("n1", "pair", END - 1)
        (told,) = lost()
        assert (told["stream"], told["node"]) == ("X", "n3")
        since = told["since"]
        expected = net_of(rows.expected(QUERIES["pair"], END))
        missing = 0
        for (start, end), row, parts in combinations(rows):
            if ("n3", "X") in parts and start >= since:
                missing += 1
                expected[start, row] -= 1
                expected[end, row] += 1
        assert missing > 0
        expected = {key: count for key, count in expected.items() if count}
        assert dict(net_of(peers.said("n1", "pair"))) == expected
        text = peers.ask("n1", "GET", "/queries/pair").json()["error"]
        assert text == f"results from {since} on lack what n3 had of X"
        assert text in peers.ask("n1", "GET", "/queries/pair/explain").text


@pytest.mark.skipif(
    "THALWEG_CHURN_MINUTES" not in os.environ,
    reason="whether a value gets hot depends on how fast tuples come: `make soak` plays it",
)
def test_peers_with_little_room_say_how_complete_results_are_and_which_values_are_hot(tmp_path):
    rows = Rows(22)
    with Peers(tmp_path, 3, room=12) as peers:
        peers.cql("n1", STREAMS)
        peers.cql("n1", f"CREATE QUERY pair AS {QUERIES['pair']}")
        for node, stream in (("n2", "X"), ("n3", "Y")):
            peers.push(node, stream, [])
        for low in range(0, 40, 5):
            for node, stream in (("n2", "X"), ("n3", "Y")):
                drawn = rows.draw(node, stream, low, low + 5, 40)
                for row in drawn:
                    row["a"] = 3
                peers.push(node, stream, drawn)
        for key, pushed in rows.pushed.items():  # as they were sent
            rows.pushed[key] = [(ts, (3, *row[1:])) for ts, row in pushed]
        for node, stream in (("n2", "X"), ("n3", "Y")):
            peers.promise(node, stream, END)
        peers.await_final("n1", "pair", END - 1)
        possible = Counter()
        for (start, _), row, _ in combinations(rows):
            possible[start, row] += 1
        said = Counter((ts, row) for ts, op, row in peers.said("n1", "pair") if op == "+")
        assert said.keys() <= possible.keys()
        told = peers.ask("n1", "GET", "/queries/pair/results?format=json").json()
        assert 0 < told["completeness"] < 1
        status = peers.ask("n1", "GET", "/queries/pair").json()["error"]
        assert status.startswith(f"about {100 * told['completeness']:.3g} % of all results")
        roles = [n["role"] for n in peers.ask("n1", "GET", "/network").json()["nodes"]]
        assert sum(role["shed"] for role in roles) > 0
        assert all(role["room"] == 12 for role in roles)
        assert [role["hot"] for role in roles if role["hot"]] == [["3"]]
