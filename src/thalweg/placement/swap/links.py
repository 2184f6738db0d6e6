"""Links between the nodes of a distributed join graph, with descriptors (COSMOS 5.3.2).

A link is an RO where rows that leave a node have one way, an RMO where there is a choice; its
descriptor says which footprints may take it: those that agree with AllowingBits in the bits of
ValidatingMask. Set are the node itself and the parent whose stream the target joins, clear is the
target (Algorithm 5.3, line 11).

Algorithms 5.2 and 5.3 find links by walking the graph. The walk finds all, and more: it links nodes
that no row ever goes between, and where a target has several parents it takes the one it came by
last, so that a mask may demand a stream that the row does not hold. Here links follow from the
footprints that rows can have. `tests/placement/swap` keeps the walk as printed, and compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from thalweg.placement.swap.distributed import DistributedJoinGraph, ajg_to_djg
from thalweg.placement.swap.footprints import Footprints, footprints, next_nodes
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph


class Kind(StrEnum):
    RO = "RO"
    RMO = "RMO"


@dataclass(frozen=True, slots=True)
class Link:
    source: int
    target: int
    stream: int  # that the target joins; the target's SteM of it takes the rows
    kind: Kind
    allowing: int
    mask: int

    def allows(self, footprint: int) -> bool:
        return footprint & self.mask == self.allowing


@dataclass(frozen=True)
class SwapPlan:
    djg: DistributedJoinGraph
    footprints: Footprints
    links: tuple[tuple[Link, ...], ...]  # by source, in order of targets

    def open_to(self, node: int, footprint: int) -> tuple[Link, ...]:
        """The links that a row may take; none if it is a result."""
        return tuple(link for link in self.links[node] if link.allows(footprint))


def set_up(annotated: AnnotatedJoinGraph) -> SwapPlan:
    djg = ajg_to_djg(annotated)
    found = footprints(djg)
    links = tuple(_links_from(djg, found, number) for number in range(len(djg.nodes)))
    return SwapPlan(djg, found, links)


def _links_from(djg: DistributedJoinGraph, found: Footprints, source: int) -> tuple[Link, ...]:
    streams: dict[int, int] = {}
    chosen: set[int] = set()  # targets that some row can choose or leave
    for footprint in found.leaving(source):
        ways = next_nodes(djg, footprint)
        streams |= dict(ways)
        if len(ways) > 1:
            chosen |= {target for target, _ in ways}
    links = []
    for target in sorted(streams):
        allowing = 1 << source | 1 << djg.home[streams[target]]
        kind = Kind.RMO if target in chosen else Kind.RO
        links.append(Link(source, target, streams[target], kind, allowing, allowing | 1 << target))
    return tuple(links)
