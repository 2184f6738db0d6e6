"""The initial distribution of queries over the coordinator tree (COSMOS 3.3.5).

The root maps its coarse query graph to its children. What goes to a child is uncoarsened by one
level and mapped there to the child's children, and so on, until leaf coordinators map to providers;
there queries move one by one.

What a coordinator decided about coarse vertices is final for all below it, and costs about 3 % in
the end. The source leaves it at that. Here the root, through which every query comes anyway, looks
at each once more, and lets those move for which another provider with room is better.
"""

from __future__ import annotations

from typing import Any

from thalweg.placement.arrays import Ints
from thalweg.placement.cosmos.descent import Descent, limits_of
from thalweg.placement.cosmos.graphs import Library, Run, Tags, at_once, build
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.model import Vertices
from thalweg.placement.cosmos.overflow import within_bound
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import View, decide, global_view


def distribute(system: System, proxy: Ints, settings: Settings, *, run: Run[Any] = at_once) -> Ints:
    """The provider of each query; `proxy` says where each was submitted."""
    graph = build(system, proxy, settings, run=run)
    library = Library.of(graph)

    def map_(_cluster: Cluster, _tags: Tags, vertices: Vertices, seen: View) -> Ints:
        return decide(vertices, system.substreams, seen)

    def settle(_cluster: Cluster, queries: Ints, seen: View, child: Ints) -> Ints:
        return sweep(system.queries.chosen(queries), system.substreams, seen, child)

    limits = limits_of(system, settings.balance, library)
    found = Descent(system, library, limits, map_, settle, run).from_root(graph)
    found = within_bound(system, found, settings.balance)
    if not settings.exchange:
        return found
    exchanged: Ints = run(system.root, "exchange", lambda: _exchange(system, settings, found))
    return exchanged


def _exchange(system: System, settings: Settings, found: Ints) -> Ints:
    seen = global_view(system, settings.balance)
    return sweep(system.queries, system.substreams, seen, found, passes=1)
