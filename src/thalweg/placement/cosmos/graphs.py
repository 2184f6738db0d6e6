"""The hierarchy of query graphs, and the way back from coarse vertices to queries (COSMOS 3.3.4).

A leaf coordinator's graph has the queries of its providers; it is coarsened and goes to the parent,
which puts together what its children sent and coarsens that again. Every coarse vertex is tagged
with the coordinator that made it: to uncoarsen it, that coordinator is asked what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.coarsening import Coarse, coarsen
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Vertices, stacked
from thalweg.placement.cosmos.system import Settings, System

_T = TypeVar("_T")

Run = Callable[[Cluster, str, Callable[[], _T]], _T]  # lets a coordinator do a step of its work


def at_once(_cluster: Cluster, _step: str, work: Callable[[], _T]) -> _T:
    """Just does it; those who measure put something else in its place."""
    return work()


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """Vertices by the graph that they are coarse vertices of, and their number there."""

    graph: Ints
    vertex: Ints

    def __len__(self) -> int:
        return len(self.graph)


@dataclass(frozen=True, slots=True, eq=False)
class QueryGraph:
    cluster: Cluster
    number: int  # by which tags name it
    coarse: Coarse
    finer: Tags  # of each vertex before coarsening; at a leaf coordinator, graph NONE and a query
    place: Ints  # of each coarse vertex: the child where its first part comes from
    parts: tuple[QueryGraph, ...] = ()  # of the child coordinators

    def all(self) -> Iterator[QueryGraph]:
        yield self
        for part in self.parts:
            yield from part.all()

    @property
    def tags(self) -> Tags:
        """Of its coarse vertices."""
        count = len(self.coarse.vertices)
        return Tags(ints(np.full(count, self.number)), ints(np.arange(count)))


def build(
    system: System, at: Ints, settings: Settings, *, stay: bool = False, run: Run[Any] = at_once
) -> QueryGraph:
    """The graphs of all coordinators, for queries that are at these providers.

    With `stay`, vertices of different children are not merged, so that each has one place.
    """
    numbers = {id(c): number for number, c in enumerate(system.root.coordinators())}

    def graph(cluster: Cluster) -> QueryGraph:
        parts = tuple(graph(c) for c in cluster.children if not c.is_provider)
        rng = np.random.default_rng([settings.seed, numbers[id(cluster)]])
        found: QueryGraph = run(cluster, "coarsen", lambda: made(cluster, parts, rng))
        return found

    def made(cluster: Cluster, parts: tuple[QueryGraph, ...], rng: Generator) -> QueryGraph:
        if parts:
            vertices = stacked([p.coarse.vertices for p in parts])
            finer = joined([p.tags for p in parts])
            place = np.repeat(np.arange(len(parts)), [len(p.tags) for p in parts])
        else:
            child = np.full(len(system.network), NONE)
            child[[c.centre for c in cluster.children]] = np.arange(len(cluster.children))
            mine = np.flatnonzero(child[at] != NONE)
            vertices = system.queries.chosen(mine)
            finer = Tags(ints(np.full(len(mine), NONE)), ints(mine))
            place = child[at[mine]]
        kept = ints(place) if stay else None
        coarse = coarsen(vertices, system.substreams, settings.most_vertices, rng, place=kept)
        first = np.unique(coarse.into, return_index=True)[1]
        number = numbers[id(cluster)]
        return QueryGraph(cluster, number, coarse, finer, ints(place[first]), parts)

    return graph(system.root) if system.root.children else _alone(system)


def _alone(system: System) -> QueryGraph:
    """A single provider needs no coordinator."""
    everyone = np.arange(len(system.queries))
    finer = Tags(ints(np.full(len(everyone), NONE)), ints(everyone))
    nowhere = ints(np.zeros(len(everyone), np.int32))
    return QueryGraph(system.root, 0, Coarse(system.queries, ints(everyone)), finer, nowhere)


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """All graphs by number: who can be asked what a vertex is made of."""

    graphs: dict[int, QueryGraph]

    @classmethod
    def of(cls, root: QueryGraph) -> Library:
        return cls({g.number: g for g in root.all()})

    def vertices(self, tags: Tags) -> Vertices:
        """The vertices themselves, in the order of their tags; these are sorted by graph."""
        return stacked(
            [
                self.graphs[number].coarse.vertices.chosen(tags.vertex[tags.graph == number])
                for number in np.unique(tags.graph).tolist()
            ]
        )

    def finer(self, tags: Tags) -> tuple[Tags, Ints]:
        """One level back: what the vertices are made of, and of each which vertex it was in."""
        graphs, vertices, parents = [], [], []
        for number in np.unique(tags.graph).tolist():
            graph = self.graphs[number]
            asked = np.flatnonzero(tags.graph == number)
            parent = np.full(len(graph.coarse.vertices), NONE, np.int32)
            parent[tags.vertex[asked]] = asked
            of = parent[graph.coarse.into]
            inside = np.flatnonzero(of != NONE)
            graphs.append(graph.finer.graph[inside])
            vertices.append(graph.finer.vertex[inside])
            parents.append(of[inside])
        graph_of, vertex_of = np.concatenate(graphs), np.concatenate(vertices)
        order = np.argsort(graph_of, kind="stable")
        parent_of = np.concatenate(parents)[order]
        return Tags(ints(graph_of[order]), ints(vertex_of[order])), ints(parent_of)


def chosen(tags: Tags, which: npt.NDArray[np.int64]) -> Tags:
    return Tags(ints(tags.graph[which]), ints(tags.vertex[which]))


def joined(tags: Sequence[Tags]) -> Tags:
    return Tags(
        ints(np.concatenate([t.graph for t in tags])),
        ints(np.concatenate([t.vertex for t in tags])),
    )
