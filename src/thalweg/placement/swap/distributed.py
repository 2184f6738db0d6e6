"""Algorithm 5.1 of COSMOS: an annotated join graph becomes a distributed join graph (DJG).

A node of the DJG is a *sub-query*: edges that hang together and are processed at the same site, or
at the same sites in parallel. A stream that no edge needs where it is delegated is a node of its
own, that only reads it. (The source gives each site one node "for ease of presentation"; where a
site has sub-queries that don't hang together, each is a node, as it says they can be.)

A node is *self-contained* if all its streams are delegated to it, else *partial*; it then has an
incoming edge from the node that each missing stream is delegated to. As printed, the algorithm
looks at one end of an edge only: begun at R, S never reaches the site of R ⋈ S. Here both count.

Since sub-queries share at most one stream, and the join graph is a tree, so is the DJG with its
directions forgotten, but for streams that several nodes share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from thalweg.placement.swap.join_graph import (
    AnnotatedJoinGraph,
    Edge,
    JoinGraph,
    JoinGraphError,
    Sites,
)


@dataclass(frozen=True, slots=True)
class SubQuery:
    """A node of the DJG; streams and edges in ascending order."""

    name: str
    sites: Sites
    streams: tuple[int, ...]
    edges: tuple[Edge, ...]
    local: tuple[int, ...]  # of its streams, those that are delegated to it
    split_by: int | None  # the stream whose part at a site decides; rows of others go to all sites

    @property
    def is_self_contained(self) -> bool:
        return self.local == self.streams

    @property
    def is_parallel(self) -> bool:
        return len(self.sites) > 1

    def key_column(self, stream: int) -> int:
        """The column by whose bucket a row of this stream finds its site, in a parallel node."""
        return next(e.column(stream) for e in self.edges if stream in e.streams)


@dataclass(frozen=True)
class DistributedJoinGraph:
    graph: JoinGraph
    nodes: tuple[SubQuery, ...]
    home: tuple[int, ...]  # of each stream: the node that it is delegated to

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The DJG's edges: to the partial nodes that use a stream of this one."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for stream in node.streams:
                if stream not in node.local:
                    found[self.home[stream]].append(number)
        return tuple(tuple(sorted(c)) for c in found)

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        parents: list[set[int]] = [set() for _ in self.nodes]
        for parent, children in enumerate(self.children):
            for child in children:
                parents[child].add(parent)
        found = [set(p) for p in parents]
        for _ in self.nodes:  # longest path at most
            for above in found:
                for parent in tuple(above):
                    above |= found[parent]
        return tuple(frozenset(a) for a in found)

    def users(self, stream: int) -> tuple[int, ...]:
        """Nodes that join the stream."""
        return tuple(i for i, n in enumerate(self.nodes) if stream in n.streams and n.edges)


def ajg_to_djg(annotated: AnnotatedJoinGraph) -> DistributedJoinGraph:
    graph = annotated.graph
    groups = _sub_queries(annotated)
    for stream, sites in enumerate(annotated.delegated):
        if not any(label == sites and stream in streams for label, streams, _ in groups):
            groups.append((sites, {stream}, []))
    groups.sort(key=lambda g: (g[0], min(g[1])))
    nodes = tuple(
        _node(annotated, _name(groups, number), *group) for number, group in enumerate(groups)
    )
    home = tuple(
        next(i for i, n in enumerate(nodes) if stream in n.local)
        for stream in range(len(graph.streams))
    )
    return DistributedJoinGraph(graph, nodes, home)


Group = tuple[Sites, set[int], list[Edge]]


def _sub_queries(annotated: AnnotatedJoinGraph) -> list[Group]:
    """Edges of one label that share streams, together: a breadth-first walk, as in the source."""
    groups: list[Group] = []
    for edge, sites in zip(annotated.graph.edges, annotated.processed, strict=True):
        touched = [g for g in groups if g[0] == sites and g[1] & set(edge.streams)]
        merged: Group = (sites, set(edge.streams), [edge])
        for group in touched:
            merged[1].update(group[1])
            merged[2].extend(group[2])
            groups.remove(group)
        groups.append(merged)
    return groups


def _name(groups: list[Group], number: int) -> str:
    """By its sites; where those have several nodes, by its streams' order as well."""
    sites = groups[number][0]
    same = [i for i, g in enumerate(groups) if g[0] == sites]
    name = "|".join(sites)
    return name if len(same) == 1 else f"{name}.{same.index(number) + 1}"


def _node(
    annotated: AnnotatedJoinGraph, name: str, sites: Sites, streams: set[int], edges: list[Edge]
) -> SubQuery:
    inside = tuple(sorted(streams))
    local = tuple(s for s in inside if annotated.delegated[s] == sites)
    kept = tuple(e for e in annotated.graph.edges if e in edges)
    split_by = _split(annotated, name, sites, kept, local) if edges and len(sites) > 1 else None
    return SubQuery(name, sites, inside, kept, local, split_by)


def _split(
    annotated: AnnotatedJoinGraph,
    name: str,
    sites: Sites,
    edges: tuple[Edge, ...],
    local: tuple[int, ...],
) -> int | None:
    """How parallel sites divide a node's rows: by the join's value, or by where one stream is."""
    columns: dict[int, set[int]] = {}
    for edge in edges:
        for stream in edge.streams:
            columns.setdefault(stream, set()).add(edge.column(stream))
    one_value = all(len(c) == 1 for c in columns.values())
    in_buckets = all(annotated.partitioned_by[s] in columns[s] for s in local)
    if one_value and in_buckets:
        return None
    if len(local) == 1:
        return local[0]
    raise JoinGraphError(
        f"node {name}: {len(sites)} sites can divide its rows by a value that all its edges join "
        "on and that its own streams are partitioned by, or by where the rows of one stream are; "
        "it has neither. Give its edges to one site."
    )
