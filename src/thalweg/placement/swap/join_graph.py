"""Join graphs, plain and annotated with sites (COSMOS 5.2.3, 5.3, figures 5.4(a) and 5.4(b)).

Nodes are streams, edges are equalities between columns of two streams. Routing needs a tree: of a
cyclic graph a spanning tree is kept, and the other equalities become conditions, tested as soon as
both of their streams have met.

The annotation says to which site a stream is delegated and where an edge is processed: at one site,
or at several in parallel (5.2.2), which then divide the edge's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Site = str
Sites = tuple[Site, ...]


class JoinGraphError(ValueError):
    """A join that can't be run across sites: what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`left.left_column = right.right_column`; streams and columns by their index."""

    left: int
    left_column: int
    right: int
    right_column: int

    def __post_init__(self) -> None:
        if self.left == self.right:
            raise JoinGraphError("an edge joins two streams; filter a stream before it is joined")

    @property
    def streams(self) -> tuple[int, int]:
        return self.left, self.right

    def column(self, stream: int) -> int:
        return self.left_column if stream == self.left else self.right_column

    def other(self, stream: int) -> int:
        return self.right if stream == self.left else self.left


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """A tree of edges over the streams, and the equalities that it leaves out."""

    streams: tuple[str, ...]
    edges: tuple[Edge, ...]
    conditions: tuple[Edge, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.streams)) < len(self.streams):
            raise JoinGraphError("two streams of a join have one name; give each an alias")
        if len(self.streams) < 2:
            raise JoinGraphError("a join has two streams or more")
        tree, rest = _spanning_tree(len(self.streams), self.edges)
        if rest:
            raise JoinGraphError("the edges have a cycle; use `join_graph`, which breaks it")
        reached = {s for e in tree for s in e.streams}
        if len(tree) < len(self.streams) - 1:
            names = [n for i, n in enumerate(self.streams) if i not in reached] or self.streams
            raise JoinGraphError(
                f"no equality connects all streams (look at {', '.join(names)}): "
                "a cross product is not run across sites"
            )


def join_graph(streams: Sequence[str], equalities: Sequence[Edge]) -> JoinGraph:
    """The graph of a query: the first equalities that need no cycle, the rest as conditions."""
    for edge in equalities:
        if not all(0 <= s < len(streams) for s in edge.streams):
            raise JoinGraphError(f"{edge} names a stream that the join does not have")
    tree, rest = _spanning_tree(len(streams), equalities)
    return JoinGraph(tuple(streams), tuple(tree), tuple(rest))


def _spanning_tree(count: int, edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
    part = list(range(count))  # streams of one part have one number

    tree: list[Edge] = []
    rest: list[Edge] = []
    for edge in edges:
        left, right = part[edge.left], part[edge.right]
        if left == right:
            rest.append(edge)
        else:
            part = [left if p == right else p for p in part]
            tree.append(edge)
    return tree, rest


@dataclass(frozen=True, slots=True)
class AnnotatedJoinGraph:
    """Where streams come from and where edges are processed, each in the order of the graph.

    `partitioned_by` has, for a stream that comes in parts, the column whose buckets its sites
    divide among them; None if a tuple may be at any of them.
    """

    graph: JoinGraph
    delegated: tuple[Sites, ...]
    processed: tuple[Sites, ...]
    partitioned_by: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.partitioned_by:
            object.__setattr__(self, "partitioned_by", (None,) * len(self.graph.streams))
        for kind, sites, wanted in (
            ("stream", self.delegated, len(self.graph.streams)),
            ("edge", self.processed, len(self.graph.edges)),
            ("stream", self.partitioned_by, len(self.graph.streams)),
        ):
            if len(sites) != wanted:
                raise JoinGraphError(f"{wanted} {kind}s need {wanted} entries, not {len(sites)}")
        for label in (*self.delegated, *self.processed):
            if not label or len(set(label)) < len(label):
                raise JoinGraphError(f"{label} is not a list of different sites")
