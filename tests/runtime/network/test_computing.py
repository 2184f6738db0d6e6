"""Nodes whose queries another engine computes: rows come from the network, go through the engine,
and its results are those of any node.

The engine is the project's own behind its wrapper, under native's name and with native's limits: so
these take no Spark. `test_native_nodes.py` has Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import run
from thalweg.engine.wrappers.refusals import native_refusal
from thalweg.engine.wrappers.shared import SharedWrapper
from thalweg.plan.engines import NATIVE
from thalweg.plan.nodes import Node

STREAMS = (
    "CREATE STREAM A (k BIGINT, x BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM B (k BIGINT, y BIGINT) TIMESTAMP BY ts BIGINT"
)
JOIN = "SELECT A.k, x, y FROM A [Range 5], B [Range 3] WHERE A.k = B.k AND x > 1"
COUNT = "SELECT k, COUNT(*) AS n FROM A [Range 5] GROUP BY k"
A = [{"ts": t, "k": t % 3, "x": t} for t in range(30)]
B = [{"ts": t, "k": t % 2, "y": 10 * t} for t in range(30)]


class Limited(SharedWrapper):
    name = NATIVE

    def refusal(self, plan: Node) -> str | None:
        return native_refusal(plan)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {
        "n1": LiveNode("n1", tmp_path, shared),
        "n2": LiveNode("n2", tmp_path, shared, engine=Limited),
    }
    yield made
    for node in made.values():
        node.close()


def test_results_of_another_engine_are_the_references(nodes: dict[str, LiveNode]) -> None:
    n1, n2 = nodes.values()
    n1.cql(STREAMS)
    n2.cql(f"CREATE QUERY q AS {JOIN}; CREATE QUERY i AS SELECT ISTREAM k FROM A [Range 2]")
    assert n1.names("queries") == {"q": "n2", "i": "n2"}
    _push(n1, A[:12], B[:12])
    eventually(lambda: _final(n1, "q") == "11")
    early = _rows(n1, "q")
    assert early
    # It goes on where it was, and says nothing twice.
    n2.close()
    n2.open()
    _push(n1, A[12:], B[12:])
    _finish(n1)
    eventually(lambda: _ended(n1, "q") and _ended(n1, "i"))
    assert _rows(n1, "q") == _expected(JOIN)
    assert _rows(n1, "i") == _expected("SELECT ISTREAM k FROM A [Range 2]")
    assert _rows(n1, "q")[: len(early)] == early
    told = n1.http.get("/queries/q/placed").text
    assert "computed by native here, over A, B" in told


def test_a_query_that_comes_late_begins_with_the_past(nodes: dict[str, LiveNode]) -> None:
    n1, n2 = nodes.values()
    n1.cql(STREAMS)
    n1.cql(f"CREATE QUERY keeps AS {JOIN}")  # so that the past is kept
    _push(n1, A[:18], B[:15])
    eventually(lambda: _final(n1, "keeps") == "14")
    n2.cql(f"CREATE QUERY q AS {JOIN}")
    _push(n1, A[18:], B[15:])
    _finish(n1)
    eventually(lambda: _ended(n1, "q"))
    # A was further, and has handed over what its window holds where it was.
    assert _rows(n1, "q") == _expected(JOIN, start=14, horizons={"A": 17 - 6})


def test_what_an_engine_refuses_stands_elsewhere_and_says_why(nodes: dict[str, LiveNode]) -> None:
    n1, n2 = nodes.values()
    n2.cql(STREAMS)
    n2.cql(f"CREATE QUERY c AS {COUNT}; CREATE QUERY q AS {JOIN}")
    assert n2.names("queries") == {"c": "n1", "q": "n2"}
    told = n1.http.get("/queries/c/placed").text
    assert "n2 was asked, and has another engine: native can't run an aggregate" in told
    _push(n2, A, B)
    _finish(n2)
    eventually(lambda: _ended(n1, "c") and _ended(n1, "q"))
    assert _rows(n1, "c") == _expected(COUNT)
    assert _rows(n1, "q") == _expected(JOIN)


def test_what_no_engine_takes_is_refused_with_the_reason(nodes: dict[str, LiveNode]) -> None:
    _, n2 = nodes.values()
    n2.cql(STREAMS)
    n2.shared.down.add("n1")
    answer = n2.http.post("/queries", json={"cql": f"CREATE QUERY c AS {COUNT}"})
    assert answer.status_code == 409
    assert "native can't run an aggregate" in answer.text


@pytest.mark.parametrize("strategy", ["edge", "in-network", "sqpr", "cosmos"])
def test_planners_put_only_what_an_engine_takes_at_a_node(
    nodes: dict[str, LiveNode], strategy: str
) -> None:
    n1, n2 = nodes.values()
    n2.cql(STREAMS)
    n1.cql(f"CREATE QUERY c AS {COUNT}", strategy)
    n1.cql(f"CREATE QUERY q AS {JOIN}", strategy)
    _push(n2, A, B)
    _finish(n2)
    eventually(lambda: _ended(n1, "c") and _ended(n1, "q"))
    assert _rows(n1, "c") == _expected(COUNT)
    assert _rows(n1, "q") == _expected(JOIN)


def test_a_fragment_is_computed_by_another_engine_and_moves_by_replay_only(
    nodes: dict[str, LiveNode],
) -> None:
    n1, n2 = nodes.values()
    n1.cql(STREAMS)
    n1.cql("CREATE STREAM C (k BIGINT) TIMESTAMP BY ts BIGINT")
    _place_at(n1, "q", JOIN, "n2")
    _push(n1, A[:12], B[:12])
    eventually(lambda: _final(n1, "q") == "11")
    (fragment,) = n2.node.publisher.published()
    answer = n1.http.post("/network/moves", json={"what": "q", "to": "n1", "by": "precopy"})
    assert "does not hand over what it remembers" in answer.text
    answer = n1.http.post("/network/moves", json={"what": "q", "to": "n1", "by": "replay"})
    assert answer.is_success, answer.text
    _push(n1, A[12:], B[12:])
    _finish(n1)
    eventually(lambda: _ended(n1, "q"))
    assert _rows(n1, "q") == _expected(JOIN)
    eventually(lambda: fragment not in n2.node.publisher.published())


def test_a_silent_stream_does_not_hold_up_an_engine(nodes: dict[str, LiveNode]) -> None:
    n1, n2 = nodes.values()
    n1.cql(
        "CREATE STREAM Quiet (k BIGINT) TIMESTAMP BY ts BIGINT IDLE 50 MILLISECONDS; "
        "CREATE STREAM Busy (k BIGINT) TIMESTAMP BY ts BIGINT"
    )
    n2.cql(
        "CREATE QUERY both AS SELECT ISTREAM Q.k FROM Quiet [Range 1000] Q, Busy [Now] B "
        "WHERE Q.k = B.k"
    )
    n1.push("Quiet", {"ts": 1, "k": 1})
    n1.push("Busy", *({"ts": t, "k": 1} for t in range(2, 101, 2)))
    eventually(lambda: len(n1.rows("both")) == 49)


def test_a_query_that_is_dropped_leaves_nothing_behind(nodes: dict[str, LiveNode]) -> None:
    n1, n2 = nodes.values()
    n1.cql(STREAMS)
    n2.cql(f"CREATE QUERY q AS {JOIN}")
    n2.cql("DROP QUERY q")
    eventually(lambda: n2.node.site.catalog.definitions == {})
    assert n2.node.computing._wrapper.queries() == []  # type: ignore[union-attr]
    assert [n for n in n1.node.data.publications.names() if ">n2." in n] == []


def _place_at(node: LiveNode, name: str, text: str, at: str) -> None:
    from thalweg.api.network.deployed import encode_placement
    from thalweg.api.network.forwarding import HERE
    from thalweg.plan.travelling import encode_plan
    from thalweg.runtime.data.fragments import cut_plan
    from thalweg.runtime.network.measuring import Task

    (query,) = compile_script(f"{STREAMS}; CREATE QUERY {name} AS {text}").queries
    fragment = cut_plan(query.plan, {(): at}, node.name)
    task = Task(name, encode_plan(query.plan), "by hand", False, (), ())
    placement = encode_placement(fragment, task)
    body = {"cql": f"CREATE QUERY {name} AS {text}", "name": "test", "placement": placement}
    answer = node.http.post("/queries", json=body, headers={HERE: "1"})
    assert answer.is_success, answer.text


def _push(node: LiveNode, a: list[dict[str, Any]], b: list[dict[str, Any]]) -> None:
    node.push("A", *a)
    node.push("B", *b)


def _finish(node: LiveNode) -> None:
    for stream in ("A", "B"):
        answer: httpx.Response = node.http.post(f"/streams/{stream}/finish")
        assert answer.is_success, answer.text


def _final(node: LiveNode, query: str) -> str | None:
    found: str | None = node.http.get(f"/queries/{query}").json()["frontier"]
    return found


def _ended(node: LiveNode, query: str) -> bool:
    return bool(node.http.get(f"/queries/{query}").json()["state"] == "finished")


def _rows(node: LiveNode, query: str) -> list[tuple[int, str, tuple[Any, ...]]]:
    return [(r["ts"], r["op"], tuple(r["row"].values())) for r in node.rows(query)]


def _expected(text: str, **options: Any) -> list[tuple[int, str, tuple[Any, ...]]]:
    (query,) = compile_script(f"{STREAMS}; CREATE QUERY q AS {text}").queries
    inputs = {
        "A": [Arrival(0, r["ts"], r["ts"], (r["k"], r["x"])) for r in A],
        "B": [Arrival(0, r["ts"], r["ts"], (r["k"], r["y"])) for r in B],
    }
    return [(c.ts, c.op, c.row) for c in run(query.plan, inputs, **options).changes]
