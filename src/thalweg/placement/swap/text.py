"""A SwAP plan as text: what EXPLAIN prints and tests compare."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.swap.distributed import DistributedJoinGraph, SubQuery
from thalweg.placement.swap.join_graph import Edge
from thalweg.placement.swap.links import Link, SwapPlan

Columns = Sequence[Sequence[str]] | None  # names of each stream's columns; None: by number


def as_text(plan: SwapPlan, columns: Columns = None) -> str:
    """Nodes with what they join and where, then links; bits stand in the order of the nodes."""
    djg = plan.djg
    lines = []
    for number, node in enumerate(djg.nodes):
        lines.append(f"node {node.name} {_about(djg, node, columns)}")
        below = ", ".join(djg.nodes[c].name for c in djg.children[number])
        if below:
            lines.append(f"  feeds {below}")
        lines += [f"  {_link(djg, link)}" for link in plan.links[number]]
        if plan.footprints.whole in plan.footprints.made[number]:
            lines.append("  gives results")
    lines += [f"condition {_edge(djg, e, columns)}" for e in djg.graph.conditions]
    return "\n".join(lines)


def kind_of(node: SubQuery) -> str:
    return "self-contained" if node.is_self_contained else "partial"


def joins_of(djg: DistributedJoinGraph, node: SubQuery, columns: Columns = None) -> list[str]:
    return [_edge(djg, e, columns) for e in node.edges]


def _about(djg: DistributedJoinGraph, node: SubQuery, columns: Columns) -> str:
    names = djg.graph.streams
    own = ", ".join(names[s] for s in node.local)
    does = "; ".join(joins_of(djg, node, columns)) or f"reads {own}"
    if node.edges and own:
        does += f" (delegated here: {own})"
    if node.is_parallel and node.edges:
        by = "join value" if node.split_by is None else f"the place of {names[node.split_by]}"
        does += f", divided by {by}"
    return f"{kind_of(node)}: {does}"


def _edge(djg: DistributedJoinGraph, edge: Edge, columns: Columns) -> str:
    def column(stream: int) -> str:
        number = edge.column(stream)
        name = number if columns is None else columns[stream][number]
        return f"{djg.graph.streams[stream]}.{name}"

    return f"{column(edge.left)} = {column(edge.right)}"


def _link(djg: DistributedJoinGraph, link: Link) -> str:
    count = len(djg.nodes)
    allowing, mask = bits(link.allowing, count), bits(link.mask, count)
    return f"{link.kind} to {djg.nodes[link.target].name} allowing {allowing} mask {mask}"


def bits(number: int, count: int) -> str:
    """As the source writes them: the first node's bit first."""
    return "[" + ",".join(str(number >> i & 1) for i in range(count)) + "]"
