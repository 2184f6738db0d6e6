"""The initial distribution of queries over the coordinator tree (COSMOS 3.3.5).

The root maps its coarse query graph to its children. What goes to a child is uncoarsened by one
level and mapped there to the child's children, and so on, until leaf coordinators map to providers;
there, at last, queries move one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.graphs import Library, QueryGraph, Run, Tags, at_once, build, chosen
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.limits import Limits
from thalweg.placement.cosmos.model import Vertices
from thalweg.placement.cosmos.overflow import within_bound
from thalweg.placement.cosmos.sweeping import sweep
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import Region, decide, view


def distribute(system: System, proxy: Ints, settings: Settings, *, run: Run[Any] = at_once) -> Ints:
    """The provider of each query; `proxy` says where each was submitted."""
    graph = build(
        system.root,
        system.queries,
        proxy,
        system.substreams,
        settings.most_vertices,
        settings.seed,
        run=run,
    )
    found = _Descent(system, settings, Library.of(graph), run).from_root(graph)
    return within_bound(system, found, settings.balance)


class _Descent:
    def __init__(self, system: System, settings: Settings, library: Library, run: Run[Any]) -> None:
        self.system, self.library, self.run = system, library, run
        self.limits = Limits(
            system.limits(settings.balance), settings.balance, heaviest(system.queries, library)
        )
        self.provider = np.full(len(system.queries), NONE, np.int32)

    def from_root(self, graph: QueryGraph) -> Ints:
        if self.system.root.is_provider:
            self.provider[:] = self.system.root.centre
        elif len(graph.tags):
            self._descend(self.system.root, graph.tags, ())
        return ints(self.provider)

    def _descend(self, cluster: Cluster, tags: Tags, elsewhere: tuple[Region, ...]) -> None:
        lowest = cluster.children[0].is_provider
        finer, child, inside = self.run(
            cluster,
            "settle" if lowest else "map",
            lambda: (self._settle if lowest else self._map)(cluster, tags, elsewhere),
        )
        if lowest:
            centres = np.array([c.centre for c in cluster.children])
            self.provider[finer.vertex] = centres[child]
            return
        for number, below in enumerate(cluster.children):
            mine = np.flatnonzero(child == number)
            if len(mine):
                others = tuple(r for i, r in enumerate(inside) if i != number)
                self._descend(below, chosen(finer, mine), elsewhere + others)

    def _map(
        self, cluster: Cluster, tags: Tags, elsewhere: tuple[Region, ...]
    ) -> tuple[Tags, Ints, tuple[Region, ...]]:
        """Vertices to child coordinators: what they are made of, where each part goes."""
        system = self.system
        vertices = self.library.vertices(tags)
        limits = self.limits.of_children(cluster)
        seen = view(cluster, system.network, system.substreams, limits, elsewhere)
        mapping = decide(vertices, system.substreams, seen)
        wanting = counts(vertices.interests, mapping, len(cluster.children))
        inside = tuple(Region(c.centre, w) for c, w in zip(cluster.children, wanting, strict=True))
        finer, parent = self.library.finer(tags)
        return finer, ints(mapping[parent]), inside

    def _settle(
        self, cluster: Cluster, tags: Tags, elsewhere: tuple[Region, ...]
    ) -> tuple[Tags, Ints, tuple[Region, ...]]:
        """Vertices to providers, then their queries one by one."""
        system = self.system
        limits = self.limits.of_children(cluster)
        seen = view(cluster, system.network, system.substreams, limits, elsewhere)
        mapping = decide(self.library.vertices(tags), system.substreams, seen)
        finer, parent = self.library.finer(tags)
        queries = system.queries.chosen(finer.vertex)
        return finer, sweep(queries, system.substreams, seen, ints(mapping[parent])), ()


def heaviest(queries: Vertices, library: Library) -> tuple[float, ...]:
    """What coordinators of each height map at most, from height 1, which maps queries, on."""
    found = {1: float(queries.weight.max(initial=0.0))}
    for graph in library.graphs.values():
        height = graph.cluster.height + 1
        heavy = float(graph.coarse.vertices.weight.max(initial=0.0))
        found[height] = max(found.get(height, 0.0), heavy)
    return tuple(found[height] for height in sorted(found))
