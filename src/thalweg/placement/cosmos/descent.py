"""Decisions from the root down: each coordinator maps, what it mapped is uncoarsened, and so on.

COSMOS 3.3.5 and 3.3.7 share this way down; they differ in how a coordinator decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.graphs import Library, QueryGraph, Run, Tags, chosen
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.limits import Limits
from thalweg.placement.cosmos.model import Balance, Vertices
from thalweg.placement.cosmos.system import System
from thalweg.placement.cosmos.view import Region, View, view

Decide = Callable[[Cluster, Tags, Vertices, View], Ints]  # the child of each vertex
Settle = Callable[[Cluster, Ints, View, Ints], Ints]  # the child of each query, from its vertex's


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    system: System
    library: Library
    limits: Limits
    decide: Decide
    settle: Settle
    run: Run[Any]

    def from_root(self, graph: QueryGraph) -> Ints:
        """The provider of each query."""
        provider = np.full(len(self.system.queries), NONE, np.int32)
        if self.system.root.is_provider:
            provider[:] = self.system.root.centre
        elif len(graph.tags):
            self._descend(self.system.root, graph.tags, (), provider)
        return ints(provider)

    def _descend(
        self, cluster: Cluster, tags: Tags, elsewhere: tuple[Region, ...], provider: Ints
    ) -> None:
        lowest = cluster.children[0].is_provider
        step = "settle" if lowest else "map"
        finer, child, inside = self.run(
            cluster, step, lambda: self._map(cluster, tags, elsewhere, lowest)
        )
        if lowest:
            centres = np.array([c.centre for c in cluster.children])
            provider[finer.vertex] = centres[child]
            return
        for number, below in enumerate(cluster.children):
            mine = np.flatnonzero(child == number)
            if len(mine):
                others = tuple(r for i, r in enumerate(inside) if i != number)
                self._descend(below, chosen(finer, mine), elsewhere + others, provider)

    def _map(
        self, cluster: Cluster, tags: Tags, elsewhere: tuple[Region, ...], lowest: bool
    ) -> tuple[Tags, Ints, tuple[Region, ...]]:
        """What the vertices are made of, where each part goes, and what is where then."""
        system = self.system
        vertices = self.library.vertices(tags)
        limits = self.limits.of_children(cluster)
        seen = view(cluster, system.network, system.substreams, limits, elsewhere)
        mapping = self.decide(cluster, tags, vertices, seen)
        finer, parent = self.library.finer(tags)
        child = ints(mapping[parent])
        if lowest:
            return finer, self.settle(cluster, finer.vertex, seen, child), ()
        wanting = counts(vertices.interests, mapping, len(cluster.children))
        inside = zip(cluster.children, wanting, strict=True)
        return finer, child, tuple(Region(c.centre, w) for c, w in inside)


def limits_of(system: System, balance: Balance, library: Library) -> Limits:
    """With what coordinators of each height map at most; those of height 1 map queries."""
    heaviest = {1: float(system.queries.weight.max(initial=0.0))}
    for graph in library.graphs.values():
        height = graph.cluster.height + 1
        heavy = float(graph.coarse.vertices.weight.max(initial=0.0))
        heaviest[height] = max(heaviest.get(height, 0.0), heavy)
    by_height = [heaviest[height] for height in sorted(heaviest)]
    return Limits(system.limits(balance), balance, by_height)
