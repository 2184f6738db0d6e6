"""What is placed is placed anew: fragments move, and no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.nodes import LiveNode, Shared, eventually
from tests.runtime.network.test_fragments import (
    SALES,
    STREAMS,
    fragments_at,
    path_of,
    plan_of,
    pushed,
)

from thalweg.engine.site import SiteError, WrongUse
from thalweg.plan.nodes import Join
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import Fragment, cut_plan
from thalweg.runtime.network.difference import Change, Running, Stays, difference
from thalweg.runtime.network.measuring import Task


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c")}
    made["a"].cql(STREAMS)
    yield made
    for node in made.values():
        node.close()


def placed(c: LiveNode, text: str, at: str) -> Fragment:
    plan = plan_of(c, text)
    made = cut_plan(plan, {path_of(plan, Join): at}, "c")
    task = Task("sales", encode_plan(plan), "by hand", False, (), (), (), made)
    c.node.place(text, made, task)
    return made


def replan(node: LiveNode, strategy: str, **given: Any) -> dict[str, Any]:
    headers = {"thalweg-strategy": strategy}
    answer = node.http.post("/network/replan", json=given, headers=headers)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_fragments_go_where_a_new_plan_has_them(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    placed(c, SALES, "b")
    c.cql(SALES.replace("sales", "whole"))
    pushed(a, 1, 150)
    eventually(lambda: len(c.rows("sales")) > 100)
    assert c.http.get("/network/check").json()[0]["problems"] == []
    # Both streams are at a: there the join belongs.
    would = replan(c, "edge", dry_run=True)
    assert [(x["from"], x["to"], x["state"]) for x in would["changes"]] == [("b", "a", "waits")]
    assert len(fragments_at(b)) == 1
    replan(c, "edge")
    pushed(a, 150, 300)
    eventually(lambda: c.http.get("/network/replan").json()["is_over"], 60)
    (change,) = c.http.get("/network/replan").json()["changes"]
    assert (change["state"], change["error"]) == ("done", None)
    eventually(lambda: fragments_at(b) == [])
    assert len(fragments_at(a)) == 1
    pushed(a, 300, 400)
    eventually(lambda: bool(c.rows("whole")) and c.rows("whole")[-1]["ts"] == 398)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 398)
    assert [(r["ts"], r["row"]) for r in c.rows("sales")] == [
        (r["ts"], r["row"]) for r in c.rows("whole")
    ]
    assert c.http.get("/network/check").json() == [
        {"query": "sales", "strategy": "edge", "problems": []}
    ]
    assert replan(c, "edge")["changes"] == []


def test_a_node_that_dies_on_the_way_goes_on(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    placed(c, SALES, "b")
    pushed(a, 1, 100)
    eventually(lambda: len(c.rows("sales")) > 50)

    def dies(_: object) -> None:
        c.node.replacing._stop.set()
        raise SiteError("as if it had died")

    c.node.fragments.move = dies  # type: ignore[method-assign]
    replan(c, "edge")
    eventually(lambda: c.node.replacing._thread is not None)
    c.node.replacing._thread.join()  # type: ignore[union-attr]
    present = c.node.replacing.present()
    assert present is not None
    assert not present.is_over
    with pytest.raises(WrongUse, match="on their way"):
        c.node.replacing.begin(present)
    c.close()
    c.open()
    eventually(lambda: c.http.get("/network/replan").json()["is_over"])
    pushed(a, 100, 110)  # the instant from which on it runs there has come
    eventually(lambda: fragments_at(b) == [])
    assert len(fragments_at(a)) == 1
    assert c.http.get("/network/check").json()[0]["problems"] == []


def test_what_runs_otherwise_than_planned_is_named(nodes: dict[str, LiveNode]) -> None:
    _, b, c = nodes.values()
    placed(c, SALES, "b")
    (publication,) = fragments_at(b)
    b.node.data.publications.close(publication)
    (told,) = c.http.get("/network/check").json()
    assert "should run at b, which does not answer for it" in told["problems"][0]


def test_the_difference_is_by_what_is_computed(nodes: dict[str, LiveNode]) -> None:
    c = nodes["c"]
    plan = plan_of(c, SALES)
    join = path_of(plan, Join)
    now = cut_plan(plan, {join: "b"}, "c").inputs[0]
    running = [Running("m", "b", "pub/#1>c.1", now.fragment)]

    def found(at: dict[tuple[int, ...], str]) -> list[Change | Stays]:
        return list(difference("sales", running, cut_plan(plan, at, "c"), "c"))

    assert found({join: "b"}) == []
    (moved,) = found({join: "a"})
    assert isinstance(moved, Change)
    assert (moved.was, moved.to) == ("b", "a")
    (whole,) = found({(): "a"})  # all of the query at a, and the join inside of that
    assert isinstance(whole, Change)
    assert whole.to == "a"
    (home,) = found({})
    assert isinstance(home, Change)
    assert (home.to, home.fragment.inputs) == ("c", ())
    lossy = plan_of(c, SALES.replace("[Range 100]", "[Rows 3]"))
    cut = cut_plan(lossy, {path_of(lossy, Join): "b"}, "c")
    stays = [Running("m", "b", "pub/#1>c.1", cut.inputs[0].fragment)]
    (kept,) = difference("sales", stays, cut_plan(lossy, {path_of(lossy, Join): "a"}, "c"), "c")
    assert isinstance(kept, Stays)
    assert "lossy" in kept.why
    (other,) = difference("sales", running, cut, "c")
    assert isinstance(other, Stays)
