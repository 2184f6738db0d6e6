"""What is placed is placed anew: fragments move, and no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.fragments.test_fragments import (
    SALES,
    STREAMS,
    fragments_at,
    path_of,
    plan_of,
    pushed,
)
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.engine.site import SiteError, Unknown, WrongUse
from thalweg.plan.cutting import places
from thalweg.plan.nodes import Join
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import Fragment, cut_plan
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.placing.difference import Change, Running, Stays, difference


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


def problems(node: LiveNode) -> list[str]:
    return [p for told in node.http.get("/network/check").json() for p in told["problems"]]


def test_what_a_drain_has_moved_runs_as_planned(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    placed(c, SALES, "b")
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("sales")) > 20)
    b.node.draining.begin()
    eventually(lambda: len(fragments_at(c)) == 1)
    assert problems(c) == []  # also while rows still come from the old place
    pushed(a, 60, 90)
    eventually(lambda: fragments_at(b) == [])
    assert len(fragments_at(c)) == 1
    assert problems(c) == []
    c.close()
    c.open()  # it is written down
    assert problems(c) == []
    for name in c.node.data.publications.names():
        c.node.data.publications.close(name)
    assert "should run at c, which does not answer for it" in problems(c)[0]


def test_what_a_fragment_reads_may_move_too(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    plan = plan_of(c, SALES)
    join = path_of(plan, Join)
    below = next(p.path for p in places(plan) if len(p.path) > len(join))
    made = cut_plan(plan, {join: "b", below: "a"}, "c")
    c.node.place(SALES, made, Task("sales", encode_plan(plan), "by hand", False, (), (), (), made))
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("sales")) > 20)
    assert problems(c) == []
    (lower,) = fragments_at(a)
    moved_by(a, lower, "c")
    eventually(lambda: fragments_at(a) == [])
    assert problems(c) == []
    # With its state, and with what is known of what it reads.
    (upper,) = fragments_at(b)
    moved_by(b, upper, "a")
    eventually(lambda: fragments_at(b) == [])
    assert problems(c) == []
    pushed(a, 60, 90)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 88)
    for name in c.node.data.publications.names():
        c.node.data.publications.close(name)
    assert "should run at c, which does not answer for it" in problems(c)[0]


def moved_by(node: LiveNode, publication: str, to: str, way: str = "precopy") -> None:
    moving = node.node.moving
    assert moving is not None
    done = moving.await_end(moving.begin(publication, to, way).move, 60)
    assert (done.state, done.error) == ("done", None)


def test_the_old_track_of_a_move_is_no_difference(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    placed(c, SALES, "b")
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("sales")) > 20)
    moved_by(b, fragments_at(b)[0], "a", "ptlb")
    eventually(lambda: not any("~" not in name and ">c" in name for name in fragments_at(b)))
    assert len(fragments_at(b)) == 1  # both compute
    assert problems(c) == []


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


def test_what_is_dropped_while_it_is_taken_over_leaves_nothing_behind(
    nodes: dict[str, LiveNode],
) -> None:
    a, _, c = nodes.values()
    placed(c, SALES, "b")
    pushed(a, 1, 100)
    eventually(lambda: len(c.rows("sales")) > 50)
    ((stream, fragment),) = [found for _, found in c.node.fragments.read()]
    succeed = c.node.mirrors.succeed

    def dropped_first(*given: Any) -> None:
        c.cql("DROP QUERY sales")
        eventually(lambda: c.node.site.catalog.find(stream.name) is None)
        succeed(*given)

    c.node.mirrors.succeed = dropped_first  # type: ignore[method-assign]
    with pytest.raises(Unknown):
        c.node.fragments.begin_again(stream, fragment)
    for node in nodes.values():
        eventually(lambda n=node: not n.node.site.catalog.queries())  # type: ignore[misc]
        eventually(lambda n=node: all(not s.source for s in n.node.site.catalog.streams()))  # type: ignore[misc]
