"""What a node computes for others leaves it, and it tells how far that is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.fragments.test_fragments import SALES, STREAMS, fragments_at, pushed
from tests.runtime.network.moves.test_moving import beside, placed, same
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.plan.nodes import Join


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c", "d")}
    made["a"].cql(STREAMS)
    yield made
    for node in made.values():
        node.close()


def drain(node: LiveNode, method: str = "GET") -> dict[str, Any]:
    answer = node.http.request(method, "/network/drain", timeout=10)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_drain_is_answered_at_once_and_told_until_all_has_gone(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, _ = nodes.values()
    assert drain(b)["state"] == "none"
    placed(c, SALES, kind=Join)
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("sales")) > 50)
    begun = drain(b, "POST")
    assert begun["state"] in ("moving", "waiting")
    assert begun["total"] == 1
    # c computes it from an instant on that comes when its streams go on: until then b is read.
    eventually(lambda: drain(b)["state"] == "waiting")
    (left,) = drain(b)["left"]
    assert (left["reader"], left["fragment"]) == ("c", fragments_at(b)[0][5:15])
    assert drain(b, "POST")["state"] == "waiting"  # asked again, it is the same
    pushed(a, 60, 90)
    eventually(lambda: drain(b)["state"] == "done")
    assert (drain(b)["left"], drain(b)["total"], drain(b)["error"]) == ([], 1, None)
    assert fragments_at(b) == []


def test_a_drain_that_fails_says_why(nodes: dict[str, LiveNode]) -> None:
    _, b, c, _ = nodes.values()
    placed(c, SALES, kind=Join)
    c.close()
    try:
        drain(b, "POST")
        eventually(lambda: drain(b)["state"] == "failed")
        assert "c, which reads" in drain(b)["error"]
        assert [x["reader"] for x in drain(b)["left"]] == ["c"]
    finally:
        c.open()


def test_what_a_node_computes_for_itself_is_not_drained(nodes: dict[str, LiveNode]) -> None:
    a, b, _, _ = nodes.values()
    headers = {"thalweg-movable": "1"}
    assert b.http.post("/queries", json={"cql": SALES}, headers=headers).is_success
    assert len(fragments_at(b)) == 1
    assert drain(b, "POST") == {"state": "done", "total": 0, "left": [], "error": None}
    pushed(a, 1, 60)
    eventually(lambda: len(b.rows("sales")) > 50)


def test_a_node_that_leaves_hands_over_what_nobody_could_rebuild(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    b.node.draining.begin()
    eventually(lambda: b.node.draining.progress().state == "done")
    assert fragments_at(b) == []
    assert len(fragments_at(c)) == 1
    pushed(a, 60, 120)
    same(nodes, 115)
    b.node.leave()
