"""Query distribution by one node that knows everything, and simpler yardsticks (COSMOS 3.4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.graphs import Library, Run, at_once, build
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.places import Places, place_in_order
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import decide, global_view


def greedy(system: System, settings: Settings) -> Ints:
    """Only the greedy half of Algorithm 3.2, over all queries and providers: heaviest first."""
    places = Places(system.queries, system.substreams, global_view(system, settings.balance))
    order = np.argsort(-system.queries.weight, kind="stable")
    place_in_order(places, order.tolist())
    return ints(places.mapping)


def centralised(
    system: System, proxy: Ints, settings: Settings, *, run: Run[Any] = at_once
) -> Ints:
    """Algorithm 3.2 over all providers at once, then over all queries.

    The edges of 60,000 queries fit nowhere, so that here too the graph is coarsened first, by the
    same hierarchy, down to what the root gets from its children: six times as fine as what the
    root itself would map.
    """
    seen = global_view(system, settings.balance)
    graph = build(system, proxy, settings, run=run)
    library = Library.of(graph)

    def one_node() -> Ints:
        tags = graph.finer
        fine = system.queries.chosen(tags.vertex) if not graph.parts else library.vertices(tags)
        mapping = decide(fine, system.substreams, seen)
        while len(tags) and tags.graph[0] != NONE:
            tags, parent = library.finer(tags)
            mapping = ints(mapping[parent])
        start = np.zeros(len(system.queries), np.int32)
        start[tags.vertex] = mapping
        return sweep(system.queries, system.substreams, seen, ints(start), passes=20)

    found: Ints = run(system.root, "centralised", one_node)
    return found


def naive(proxy: Ints) -> Ints:
    """Every query at its local provider, whatever the load."""
    return proxy
