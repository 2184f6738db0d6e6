"""What EXPLAIN says of a join across nodes: its distributed join graph, and each node's part in it
with the rows that have gone each way, in all and lately."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from thalweg.adapt.swap.messages import SINK
from thalweg.adapt.swap.query import SwapQuery
from thalweg.adapt.swap.state import SiteState
from thalweg.overlay.stack import Stack
from thalweg.placement.swap.text import joins_of, kind_of
from thalweg.runtime.swap.joins import Joins
from thalweg.runtime.swap.legs import swap_of


def graph_json(query: SwapQuery, names: dict[str, str], columns: Sequence[Sequence[str]]) -> Any:
    """The plan, with the nodes' own names; `columns` are those of each stream that travel."""
    plan = query.plan
    streams = plan.djg.graph.streams
    found = []
    for number, node in enumerate(plan.djg.nodes):
        found.append(
            {
                "number": number,
                "nodes": [names.get(site, site) for site in node.sites],
                "kind": kind_of(node),
                "joins": joins_of(plan.djg, node, columns),
                "reads": [streams[s] for s in node.local],
                "links": [
                    {"to": x.target, "kind": x.kind.value, "stream": streams[x.stream]}
                    for x in plan.links[number]
                ],
                "gives_results": plan.footprints.whole in plan.footprints.made[number],
            }
        )
    return found


def part_json(joins: Joins, query: str) -> dict[str, Any] | None:
    """This node's part; None if it has none."""

    def find(stack: Stack) -> dict[str, Any] | None:
        state = swap_of(stack).queries.get(query)
        return None if state is None else _state_json(state)

    found = joins.read(find)
    if found is None:
        return None
    now_s, feeder = time.monotonic(), joins.feeder
    for node in found["nodes"]:
        for way in node["ways"]:
            key, rows = (query, node["number"], way["to"]), way["rows"]
            way["lately"] = [] if feeder is None else feeder.shares.periods(key, now_s, rows)
    found["troubles"] = [] if feeder is None else list(feeder.troubles(query).values())
    return found


def _state_json(state: SiteState) -> dict[str, Any]:
    streams = state.query.annotated.graph.streams
    nodes = []
    for number, eddy in state.eddies.items():
        chosen = state.policies[number].chosen
        nodes.append(
            {
                "number": number,
                "stored": sum(len(stem.rows) for stem in eddy.stems.values()),
                "waiting": sum(map(len, eddy.pending.values())),
                "why": dict(chosen),
                "ways": [
                    {"to": link.target, "rows": state.routed.get((number, link.target), 0)}
                    for link in state.query.plan.links[number]
                ],
                "results": sum(
                    out.last
                    for (source, to, _), out in state.outs.items()
                    if source == number and to == SINK
                ),
            }
        )
    fed = {streams[stream]: home.upto for stream, home in sorted(state.homes.items())}
    return {"nodes": nodes, "fed": fed}
