"""What a strategy would do with the network as it is measured now, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from thalweg.api.network.placed import computes
from thalweg.placement.cost import cost_of
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.measuring import NodeMeasure
from thalweg.runtime.network.placing.deploying import Planned


def plan_json(strategy: str, planned: Planned, measured: Sequence[NodeMeasure]) -> dict[str, Any]:
    hosts = planned.problem.hosts
    return {
        "strategy": strategy,
        # With all that runs already as it was planned.
        "traffic_bps": cost_of(planned.problem, planned.outcome.deployment).network_bps,
        "nodes": [
            {
                "name": node.name,
                "cpu": node.cpu,
                "out_bps": node.out_bps,
                "in_bps": node.in_bps,
                "delays_ms": node.delays_ms,
                "streams": {
                    name: {"rows_per_s": s.rows_per_s, "bps": s.rows_per_s * s.row_bits}
                    for name, s in node.streams.items()
                },
            }
            for node in measured
        ],
        "queries": [
            {
                "query": p.query,
                "node": p.node,
                "fragments": list(_fragments(p.fragment)),
                "why": list(p.task.words),
            }
            for p in planned.placements
        ],
        "refused": [
            {
                "query": query,
                "resource": r.resource,
                "node": None if r.host is None else hosts.names[r.host],
                "detail": r.detail,
            }
            for query, r in planned.refusals
        ],
    }


def _fragments(fragment: Fragment) -> Iterator[dict[str, str]]:
    for given in fragment.inputs:
        yield {"node": given.at, "computes": computes(given.fragment.node)}
        yield from _fragments(given.fragment)
