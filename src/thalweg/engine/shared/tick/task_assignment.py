"""Ticks of many runs over few rows: the tasks divide the runs among them, not the rows.

With hundreds of different queries it is the queries that cost, however few the new tuples: tasks
that each had a slice of the rows would all have the same trouble with every query. So each takes
some of the runs, and all rows for them; nothing changes hands. Runs that have an operator with
state in common stay together, for that state has one writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rustworkx as rx

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.tick.plan import Plan

Share = tuple[str, ...]  # of runs


def shares(
    plan: Plan, tasks: int, seconds: Mapping[str, float], at_least_s: float
) -> tuple[Share, ...]:
    """What each task takes, by the seconds that runs were seen to need; nothing: one takes all.

    Longest first, each to the task that has least to do.
    """
    known = [seconds.get(run, 0.0) for run, _ in plan.outputs]
    if tasks == 1 or plan.read_relations or not known or sum(known) < at_least_s:
        return ()
    bundles = _together(plan)
    if len(bundles) == 1:
        return ()
    cost = {bundle: sum(seconds.get(run, 0.0) for run in bundle) for bundle in bundles}
    taken: list[list[str]] = [[] for _ in range(min(tasks, len(bundles)))]
    busy = [0.0] * len(taken)
    # Runs that were never seen need some time, too: between equals, who has fewer takes more.
    for bundle in sorted(bundles, key=lambda b: -cost[b]):
        least = min(range(len(taken)), key=lambda i: (busy[i], len(taken[i])))
        taken[least] += bundle
        busy[least] += cost[bundle]
    return tuple(tuple(runs) for runs in taken)


def _together(plan: Plan) -> Sequence[Share]:
    """Runs that have state in common; worked out once for a plan."""
    if "together" not in plan.memo:
        graph = rx.PyGraph()
        nodes: dict[tuple[str, str], int] = {}
        for flow in plan.flows:
            for run, output in flow.outputs:
                node = graph.add_node(run)
                for op in ph.walk(output):
                    if ph.is_from_streams(op):
                        continue  # filters of base streams keep nothing
                    name = (flow.name, plan.name_of(op))
                    if name not in nodes:
                        nodes[name] = graph.add_node(None)
                    graph.add_edge(node, nodes[name], None)
        bundles = (sorted(c) for c in rx.connected_components(graph))
        plan.memo["together"] = [
            tuple(run for i in of if (run := graph[i]) is not None) for of in bundles
        ]
    found: list[Share] = plan.memo["together"]
    return found
