"""Operators of a query at several nodes: what one computes, another reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.network.nodes import LiveNode, Shared, eventually

from thalweg.plan.cutting import places
from thalweg.plan.nodes import Join, Node
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
    from thalweg.cql import compile_script

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
