"""Readers at several nodes of one fragment: it is computed once, and each reads it as its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock, Thread
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

from thalweg.plan.nodes import Join
from thalweg.runtime.data.fragments import cut_plan
from thalweg.runtime.data.messages import Opened
from thalweg.runtime.network.mirrors.subscribing import Subscribing


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c", "d")}
    made["a"].cql(STREAMS)
    yield made
    for node in made.values():
        node.close()


def place(node: LiveNode, name: str, text: str = SALES) -> None:
    made = text.replace("sales", name)
    plan = plan_of(node, made)
    node.node.place(made, cut_plan(plan, {path_of(plan, Join): "b"}, node.name))


def said(node: LiveNode, query: str, since: int = 0) -> list[tuple[object, ...]]:
    found = [(r["ts"], r["op"], tuple(r["row"].values())) for r in node.rows(query)]
    return [row for row in found if row[0] > since]


def reaches(node: LiveNode, query: str, instant: int) -> None:
    eventually(lambda: bool(node.rows(query)) and node.rows(query)[-1]["ts"] == instant)


RELATION = SALES.replace("ISTREAM ", "").replace("[Now]", "[Range 3]")


def test_readers_at_two_nodes_share_a_fragment_that_has_begun(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    place(c, "one", RELATION)
    c.cql(RELATION.replace("sales", "whole"))
    pushed(a, 1, 150)
    eventually(lambda: len(c.rows("one")) > 100)
    place(d, "two", RELATION)
    assert len(fragments_at(b)) == 1
    assert [n.partition(">")[2] for n in b.node.data.publications.names()] == ["c.1", "d.1"]
    pushed(a, 150, 250)
    for node, query in ((c, "one"), (d, "two"), (c, "whole")):
        eventually(lambda n=node, q=query: int(n.rows(q)[-1]["ts"]) > 240)  # type: ignore[misc]
    whole = said(c, "whole", 200)
    upto = int(whole[-1][0])  # type: ignore[call-overload]
    assert len(whole) > 50

    def both() -> list[list[tuple[object, ...]]]:
        found = (said(c, "one", 200), said(d, "two", 200))
        return [[r for r in rows if int(r[0]) <= upto] for rows in found]  # type: ignore[call-overload]

    eventually(lambda: both() == [whole, whole])
    # What it began with is what the other holds then.
    assert {r[1] for r in said(d, "two") if r[0] == said(d, "two")[0][0]} == {"+"}
    b.close()
    b.open()
    c.cql("DROP QUERY one")
    eventually(lambda: [n.partition(">")[2] for n in b.node.data.publications.names()] == ["d.1"])
    assert len(fragments_at(b)) == 1
    pushed(a, 250, 300)
    eventually(lambda: int(d.rows("two")[-1]["ts"]) > 290)
    c.cql("DROP QUERY whole")
    d.cql("DROP QUERY two")
    eventually(lambda: fragments_at(b) == [])
    eventually(lambda: not a.node.site.catalog.queries())


def test_readers_that_begin_together_share_streams_too(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    place(c, "one")
    place(d, "two")
    assert len(fragments_at(b)) == 1
    pushed(a, 1, 100)
    reaches(c, "one", 98)
    reaches(d, "two", 98)
    assert said(c, "one") == said(d, "two")
    assert len(said(c, "one")) > 50


def test_what_depends_on_its_start_is_not_shared(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    lossy = RELATION.replace("[Range 100]", "[Rows 3]")
    place(c, "one", lossy)
    pushed(a, 1, 50)
    eventually(lambda: bool(c.rows("one")))
    place(d, "two", lossy)
    assert len(fragments_at(b)) == 2


def test_a_node_that_leaves_hands_it_over_to_each_reader(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    place(c, "one", RELATION)
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("one")) > 10)
    place(d, "two", RELATION)
    pushed(a, 60, 90)
    eventually(lambda: bool(d.rows("two")))
    leaving = Thread(target=b.node.leave)
    leaving.start()
    now = 90
    while leaving.is_alive():  # each goes over at an instant that has still to come
        pushed(a, now, now + 5)
        now += 5
        leaving.join(0.2)
    pushed(a, now, now + 50)
    for node, query in ((c, "one"), (d, "two")):
        eventually(lambda n=node, q=query: int(n.rows(q)[-1]["ts"]) > now + 40)  # type: ignore[misc]
        assert len(fragments_at(node)) == 1
    assert fragments_at(b) == []
    eventually(lambda: said(c, "one", 100) == said(d, "two", 100))


def test_time_that_goes_on_while_streams_are_opened_does_not_stop_a_move(
    nodes: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c, _ = nodes.values()
    a.cql(RELATION.replace("sales", "whole"))
    place(c, "one", RELATION)
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("one")) > 10)
    now, pushing = [60], Lock()

    def go_on(by: int) -> None:
        with pushing:
            pushed(a, now[0], now[0] + by)
            now[0] += by

    original = Subscribing.subscribed

    def subscribed(self: Subscribing, *asked: Any, **how: Any) -> Opened:
        answer = original(self, *asked, **how)
        go_on(200)  # further than any window reaches
        reached = now[0] - 10
        eventually(lambda: a.node.site.engine.watermark("Sold") >= reached)
        return answer

    monkeypatch.setattr(Subscribing, "subscribed", subscribed)
    leaving = Thread(target=b.node.leave)
    leaving.start()
    while leaving.is_alive():
        leaving.join(0.2)
        go_on(5)
    assert (len(fragments_at(c)), fragments_at(b)) == (1, [])
    eventually(lambda: said(a, "whole") == said(c, "one"))
