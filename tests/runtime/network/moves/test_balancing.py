"""The balancer of live nodes moves parts from who has much to do to who has little."""

from __future__ import annotations

from collections import Counter

from tests.runtime.network.nodes import LiveNode
from tests.runtime.network.placing.test_spreading import (
    expected,
    nodes,
    parts,
    push,
    said,
    spread,
    submitted,
)
from tests.runtime.waiting import eventually

from thalweg.adapt.balancing.fragments import NodeLoad, Settings

__all__ = ["nodes"]


def weighs_by_number(node: LiveNode) -> None:
    """Each fragment is a tenth of a core, on whatever machine."""
    real = node.node.balancing.weigh

    def weigh() -> NodeLoad:
        found = real()
        even = tuple(
            type(f)(f.publication, 0.1, f.state_bytes, f.bytes_per_s, f.reach_s, f.linear)
            for f in found.fragments
        )
        return NodeLoad(found.node, 0.1 * len(even), even, found.is_busy)

    node.node.balancing.weigh = weigh  # type: ignore[method-assign]


def test_parts_go_from_a_node_that_has_all_of_them_to_the_others(
    nodes: dict[str, LiveNode],
) -> None:
    a, _, c = nodes.values()
    spread(c, "b/4")
    push(a, 1, 40)
    eventually(lambda: said(c) == expected(40))
    loads = {x.node: x for x in c.node.balancing.loads()}
    assert {n: len(x.fragments) for n, x in loads.items()} == {"a": 0, "b": 4, "c": 0}
    assert all(f.reach_s is not None and not f.linear for f in loads["b"].fragments)
    told = {x["node"]: x for x in a.http.get("/network/loads").json()}
    assert told.keys() == {"a", "b", "c"}
    assert all(x["memory_bytes"] > 1e6 for x in told.values())
    assert told["b"]["in_bps"] > 0  # streams, from a
    assert told["a"]["in_bps"] == 0
    assert all(len(f["fragment"]) == 10 for f in told["b"]["fragments"])
    for node in nodes.values():
        weighs_by_number(node)
    c.node.balancing.manage(Settings(pause_s=0, looks=1), look_every_s=1.2)
    eventually(lambda: Counter(parts(c).values()) == {"a": 1, "b": 2, "c": 1})
    push(a, 40, 70)
    eventually(lambda: said(c) == expected(70))
    moves = c.http.get("/network/moves").json()
    assert [(m["at"], m["asked_by"]) for m in moves] == [("b", "balancer at c")] * 2
    assert all("cores of ticks" in m["why"] for m in moves)


def test_parts_that_only_join_can_be_moved_by_ptlb(nodes: dict[str, LiveNode]) -> None:
    a, _, c = nodes.values()
    joined = (
        "CREATE QUERY pairs AS SELECT S.item, B.price FROM Sold [Range 10] S, Bids [Range 10] B "
        "WHERE S.item = B.item"
    )
    assert submitted(c, "b/4", joined).is_success

    def linear() -> list[bool]:
        (load,) = (x for x in c.node.balancing.loads() if x.node == "b")
        return [f.linear for f in load.fragments]

    assert linear() == [False] * 4  # nothing was said yet: nothing is old
    push(a, 1, 40)
    eventually(lambda: linear() == [True] * 4)
