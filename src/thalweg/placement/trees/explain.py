"""Why a node hangs where it hangs: its way from the home, and what other parents would cost.

For people, from the same books that planners use. COSMOS (seed 000) 4.2.1 has the terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes


def why(
    nodes: Nodes,
    cargos: Sequence[Cargo],
    forest: Forest,
    node: int,
    *,
    tree: int = 0,
    names: Sequence[str] | None = None,
    alternatives: int = 3,
) -> list[str]:
    """Lines of text."""
    named = names or [f"n{i}" for i in range(len(nodes))]
    if node == HOME:
        return [f"{named[node]} is the home: every way begins there"]
    if not cargos[tree].members[node]:
        return [f"{named[node]} wants nothing of this tree"]
    ledger = Ledger(nodes, cargos, forest)
    total = loss(nodes, cargos, forest) * (len(nodes) - 1)
    parent = int(forest[tree][node])
    lines = [f"{named[node]} hangs under {named[parent]}", *_way(ledger, nodes, tree, node, named)]
    options = [ledger.move(tree, node, to) for to in ledger.members[tree] if to != node]
    ranked = sorted((m for m in options if m is not None), key=lambda m: m.delta)
    for move in ranked[:alternatives]:
        share = move.delta / total if total else 0.0
        told = f"{abs(share):.2%} {'more' if share >= 0 else 'less'}"
        reason = _reason(ledger, nodes, tree, node, move.to)
        lines.append(f"under {named[move.to]}, all would lose {told}: {reason}")
    below = len(ledger.children[tree][node])
    lines.append(f"serves {below} itself, busy {ledger.busy[node]:.1%} of the time")
    return lines


def _way(ledger: Ledger, nodes: Nodes, tree: int, node: int, named: Sequence[str]) -> list[str]:
    """Where a row's time goes on its way here, from the home down."""
    ways = [node]
    while ways[-1] != HOME:
        ways.append(ledger.parent[tree][ways[-1]])
    lines, links_s, nodes_s = [], 0.0, 0.0
    for above, at in zip(ways[:0:-1], ways[-2::-1], strict=True):
        inside_s, link_s = ledger.passing_s(tree, above), float(nodes.delay_s[above, at])
        links_s, nodes_s = links_s + link_s, nodes_s + inside_s
        lines.append(
            f"  {named[above]} → {named[at]}: {inside_s * 1e3:.1f} ms in {named[above]}"
            f" ({ledger.busy[above]:.0%} busy, {len(ledger.children[tree][above])} children),"
            f" {link_s * 1e3:.1f} ms on the way"
        )
    whole = (links_s + nodes_s) * 1e3
    head = (
        f"its rows take {whole:.1f} ms: {links_s * 1e3:.1f} on links, {nodes_s * 1e3:.1f} in nodes"
    )
    return [head, *lines]


def _reason(ledger: Ledger, nodes: Nodes, tree: int, node: int, to: int) -> str:
    """The larger part of the difference: a longer way, or a node that others wait for."""
    present = ledger.parent[tree][node]
    way_s = ledger.reached_s(tree, to) + nodes.delay_s[to, node]
    now_s = ledger.reached_s(tree, present) + nodes.delay_s[present, node]
    further_ms = float(way_s - now_s) * 1e3
    told = "longer" if further_ms >= 0 else "shorter"
    count = len(ledger.children[tree][to])
    return f"the way there is {abs(further_ms):.1f} ms {told}, and it has {count} children"
