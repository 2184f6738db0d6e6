"""Frontiers per (link, footprint): what a node can still get, and what can still leave it.

A row with footprint F leaves a node when the last of its parts has arrived, so nothing more with F
can start before the least frontier of the parts. Footprints only grow on the way, so this graph has
no cycle, although sites send both ways; with one frontier per link each would wait for the other.
"""

from __future__ import annotations

from thalweg.adapt.swap.messages import SINK, Frontiers
from thalweg.adapt.swap.query import NEVER
from thalweg.adapt.swap.state import SiteState
from thalweg.placement.swap.footprints import LOCAL


def coming(state: SiteState, node: int, stream: int, footprint: int) -> int:
    """Rows with this footprint that arrive from now on start at this instant or later."""
    if footprint == LOCAL:
        return state.homes[stream].upto
    plan = state.query.plan
    return min(
        state.ins[source, node, address].frontiers.get(footprint, NEVER)
        for source in plan.footprints.coming[node][stream, footprint]
        for address in plan.djg.nodes[source].sites
    )


def lowest(state: SiteState, node: int) -> int:
    """No row arrives before it, and none is ended before it."""
    keys = state.query.plan.footprints.coming[node]
    return min(coming(state, node, stream, footprint) for stream, footprint in keys)


def leaving(state: SiteState, node: int) -> dict[int, int]:
    """By footprint: rows that leave from now on start, or are ended, at this instant or later."""
    found = {}
    pending = state.eddies[node].pending
    for footprint, parts in state.query.plan.footprints.made[node].items():
        frontier = min(coming(state, node, stream, part) for stream, part in parts)
        for row in pending.get(footprint, ()):
            frontier = min(frontier, row.start)
        found[footprint] = frontier
    return found


def on_link(state: SiteState, node: int, target: int, known: dict[int, int]) -> Frontiers:
    """Of those that leave the node, the ones that this link's target may get."""
    if target == SINK:
        whole = state.query.plan.footprints.whole
        return ((whole, known[whole]),)
    link = next(x for x in state.query.plan.links[node] if x.target == target)
    return tuple([(f, at) for f, at in known.items() if link.allows(f)])


def of_results(state: SiteState) -> int:
    whole = state.query.plan.footprints.whole
    ins = [i for i in state.ins.values() if i.target == SINK]
    return min(i.frontiers.get(whole, NEVER) for i in ins)
