"""A SwAP plan as text: what EXPLAIN prints and tests compare."""

from __future__ import annotations

from thalweg.placement.swap.distributed import DistributedJoinGraph, SubQuery
from thalweg.placement.swap.join_graph import Edge
from thalweg.placement.swap.links import Link, SwapPlan


def as_text(plan: SwapPlan) -> str:
    """Nodes with what they join and where, then links; bits stand in the order of the nodes."""
    djg = plan.djg
    lines = []
    for number, node in enumerate(djg.nodes):
        lines.append(f"node {node.name} {_about(djg, node)}")
        below = ", ".join(djg.nodes[c].name for c in djg.children[number])
        if below:
            lines.append(f"  feeds {below}")
        lines += [f"  {_link(djg, link)}" for link in plan.links[number]]
        if plan.footprints.whole in plan.footprints.made[number]:
            lines.append("  gives results")
    lines += [f"condition {_edge(djg, e)}" for e in djg.graph.conditions]
    return "\n".join(lines)


def _about(djg: DistributedJoinGraph, node: SubQuery) -> str:
    names = djg.graph.streams
    kind = "self-contained" if node.is_self_contained else "partial"
    own = ", ".join(names[s] for s in node.local)
    does = "; ".join(_edge(djg, e) for e in node.edges) or f"reads {own}"
    if node.edges and own:
        does += f" (delegated here: {own})"
    if node.is_parallel and node.edges:
        by = "join value" if node.split_by is None else f"the place of {names[node.split_by]}"
        does += f", divided by {by}"
    return f"{kind}: {does}"


def _edge(djg: DistributedJoinGraph, edge: Edge) -> str:
    names = djg.graph.streams
    left = f"{names[edge.left]}.{edge.left_column}"
    return f"{left} = {names[edge.right]}.{edge.right_column}"


def _link(djg: DistributedJoinGraph, link: Link) -> str:
    count = len(djg.nodes)
    allowing, mask = bits(link.allowing, count), bits(link.mask, count)
    return f"{link.kind} to {djg.nodes[link.target].name} allowing {allowing} mask {mask}"


def bits(number: int, count: int) -> str:
    """As the source writes them: the first node's bit first."""
    return "[" + ",".join(str(number >> i & 1) for i in range(count)) + "]"
