"""Operators of a query at several nodes: what one computes, another reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine.site import SiteError
from thalweg.plan.cutting import places
from thalweg.plan.nodes import Distinct, Join, Node
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import cut_plan

STREAMS = """
CREATE STREAM Bids (item BIGINT, price DOUBLE) TIMESTAMP BY ts BIGINT;
CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT;
"""
SALES = """CREATE QUERY sales AS SELECT ISTREAM B.item, B.price FROM Bids [Range 100] B,
           Sold [Now] S WHERE B.item = S.item AND B.price > 1"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c")}
    yield made
    for node in made.values():
        node.close()


def path_of(plan: Node, kind: type) -> tuple[int, ...]:
    return next(p.path for p in places(plan) if isinstance(p.node, kind))


def plan_of(node: LiveNode, text: str) -> Node:
    return compile_script(text, node.node.catalog()).queries[0].plan


def test_a_join_is_computed_at_another_node(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    plan = plan_of(c, SALES)
    c.node.place(SALES, cut_plan(plan, {path_of(plan, Join): "b"}, "c"))
    a.push("Bids", {"ts": 1, "item": 1, "price": 5.0}, {"ts": 2, "item": 2, "price": 7.5})
    a.push("Sold", {"ts": 3, "item": 2}, {"ts": 4, "item": 1}, {"ts": 50, "item": 9})
    a.push("Bids", {"ts": 50, "item": 3, "price": 1.0})
    for node in (a, b, c):
        eventually(lambda node=node: len(node.rows("sales")) == 2)  # type: ignore[misc]
        assert [(r["item"], r["price"]) for r in node.values("sales")] == [(2, 7.5), (1, 5.0)]
    assert next(s.name for s in c.node.site.catalog.streams()).startswith("fragment/")
    c.cql("DROP QUERY sales")
    eventually(lambda: not b.node.site.catalog.streams())
    eventually(lambda: not a.node.site.catalog.queries())
    assert not c.node.site.catalog.streams()


def fragments_at(node: LiveNode) -> list[str]:
    """What it computes for others."""
    return [q.name for q in node.node.site.catalog.queries() if q.name.startswith("pub/#")]


def test_equal_fragments_are_shared_and_go_with_the_last_query(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    other = SALES.replace("sales", "prices").replace("ISTREAM B.item, B.price", "ISTREAM B.price")
    for text in (SALES, other):
        plan = plan_of(c, text)
        c.node.place(text, cut_plan(plan, {path_of(plan, Join): "b"}, "c"))
    assert len(fragments_at(b)) == 1
    a.push("Bids", *({"ts": t, "item": 1, "price": 5.0} for t in range(1, 300, 50)))
    a.push("Sold", *({"ts": t, "item": 1} for t in range(1, 300, 50)))
    eventually(lambda: len(c.rows("sales")) == 12)
    # Its windows have been filled since it began, so that a late query can share it, too.
    late = SALES.replace("sales", "late")
    c.node.place(late, cut_plan(plan_of(c, late), {path_of(plan_of(c, late), Join): "b"}, "c"))
    assert len(fragments_at(b)) == 1
    c.cql("DROP QUERY sales; DROP QUERY late")
    assert len(fragments_at(b)) == 1
    a.push("Bids", {"ts": 300, "item": 1, "price": 5.0})
    a.push("Sold", {"ts": 299, "item": 1}, {"ts": 300, "item": 1})
    eventually(lambda: len(c.rows("prices")) == 17)
    c.cql("DROP QUERY prices")
    eventually(lambda: fragments_at(b) == [])


def test_another_plan_of_the_same_text_is_another_fragment(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    other = SALES.replace("sales", "longer").replace("Range 100", "Range 101")
    for text in (SALES, other):
        plan = plan_of(c, text)
        c.node.place(text, cut_plan(plan, {path_of(plan, Join): "b"}, "c"))
    assert len(fragments_at(b)) == 2


def test_silence_is_said_along_a_chain_of_fragments(nodes: dict[str, LiveNode]) -> None:
    a, _, c = nodes.values()
    a.cql(
        "CREATE STREAM Quiet (item BIGINT) TIMESTAMP BY ts BIGINT IDLE 50 MILLISECONDS; "
        "CREATE STREAM Busy (item BIGINT) TIMESTAMP BY ts BIGINT"
    )
    text = """CREATE QUERY both AS SELECT ISTREAM Q.item
              FROM (SELECT DISTINCT item FROM Quiet [Range 1000] WHERE item > 0) Q, Busy [Now] B
              WHERE Q.item = B.item"""
    plan = plan_of(c, text)
    distinct = path_of(plan, Distinct)
    # Quiet at a, its window at b, what is distinct of it at a again, the join at c.
    at = {distinct: "a", (*distinct, 0): "b"}
    c.node.place(text, cut_plan(plan, at, "c"))
    a.push("Quiet", {"ts": 1, "item": 1})
    a.push("Busy", *({"ts": t, "item": 1} for t in range(2, 101, 2)))
    eventually(lambda: len(c.rows("both")) == 49)


def test_a_fragment_that_nothing_came_to_read_is_given_back(nodes: dict[str, LiveNode]) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    plan = plan_of(c, SALES)
    fragment = cut_plan(plan, {path_of(plan, Join): "b"}, "c")
    # As if the node had died between opening the fragment and reading it.
    with suppress(RuntimeError), c.node.fragments.assembled(fragment):
        c.node.fragments._mirrors = Silent()  # type: ignore[assignment]
        c.node.fragments._note = lambda **_: None  # type: ignore[assignment]
        raise RuntimeError
    assert len(fragments_at(b)) == 1
    c.close()
    c.open()
    eventually(lambda: fragments_at(b) == [])
    eventually(lambda: not a.node.site.catalog.queries())


class Silent:
    def give_back(self, _: object) -> None: ...


def test_a_part_that_must_know_the_beginning_is_refused_once_that_is_past(
    nodes: dict[str, LiveNode],
) -> None:
    a, _, c = nodes.values()
    a.cql(STREAMS)
    a.push("Bids", {"ts": 5, "item": 1, "price": 5.0})
    eventually(lambda: a.node.site.engine.watermark("Bids") >= 5)
    text = "CREATE QUERY n AS SELECT COUNT(*) AS n FROM Bids [Range 3] WHERE price > 1"
    plan = plan_of(c, text)
    below = next(p for p in places(plan) if p.from_beginning)
    with pytest.raises(SiteError, match="known from their beginning"):
        c.node.place(text, cut_plan(plan, {below.path: "b"}, "c"))
    eventually(lambda: all(not n.node.site.catalog.queries() for n in nodes.values()))


def pushed(node: LiveNode, begin: int, end: int) -> None:
    node.push("Bids", *({"ts": t, "item": t % 3, "price": 5.0} for t in range(begin, end)))
    node.push("Sold", *({"ts": t, "item": t % 4} for t in range(begin, end)))


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_node_that_leaves_hands_its_fragments_over(
    nodes: dict[str, LiveNode], is_stream: bool
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    plan = plan_of(c, SALES)
    at = () if is_stream else path_of(plan, Join)
    # A window at c for the join at b: a chain that goes over as a whole.
    below = next(p.path for p in places(plan) if len(p.path) > len(path_of(plan, Join)))
    c.node.place(SALES, cut_plan(plan, {at: "b", below: "c"}, "c"))
    c.cql(SALES.replace("sales", "whole"))
    pushed(a, 1, 150)
    eventually(lambda: len(c.rows("sales")) > 100)
    leaving = Thread(target=b.node.leave)
    leaving.start()
    pushed(a, 150, 300)  # an open reader goes over between two batches
    leaving.join(60)
    assert not leaving.is_alive()
    assert fragments_at(b) == []
    pushed(a, 300, 400)
    eventually(lambda: bool(c.rows("whole")) and c.rows("whole")[-1]["ts"] == 398)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 398)
    assert [(r["ts"], r["row"]) for r in c.rows("sales")] == [
        (r["ts"], r["row"]) for r in c.rows("whole")
    ]
    c.close()
    c.open()
    pushed(a, 400, 410)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 408)


def test_one_that_never_spoke_begins_elsewhere_with_what_came_meanwhile(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c = nodes.values()
    a.cql(STREAMS)
    plan = plan_of(c, SALES)
    c.node.place(SALES, cut_plan(plan, {path_of(plan, Join): "b"}, "c"))
    # As nodes do for those who read what others compute of their streams.
    a.node.site.engine.holds.write("test", dict.fromkeys(("Bids", "Sold"), BEGINNING))
    b.close()
    a.push("Bids", *({"ts": t, "item": t, "price": 5.0} for t in range(1, 400)))
    a.push("Sold", *({"ts": t, "item": t} for t in range(1, 400)))
    eventually(lambda: a.node.site.engine.watermark("Sold") == 399)
    ((stream, fragment),) = [found for _, found in c.node.fragments.read()]
    c.node.fragments.begin_again(stream, fragment)
    eventually(lambda: len(c.rows("sales")) == 398)
    b.open()
