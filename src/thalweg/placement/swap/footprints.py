"""Which footprints rows can have, and where: the classes that frontiers are kept for.

A row that leaves a node holds all streams of that node, and of every node that its parts went
through. So its *footprint*, the set of these nodes (a bit for each, COSMOS 5.2.1), says which
streams it holds. At a node, a row with footprint F is made of one row for each of the node's
streams; their footprints are parts of F that share no node, since the join graph is a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from thalweg.placement.swap.distributed import DistributedJoinGraph
from thalweg.placement.swap.join_graph import JoinGraphError

MOST_CLASSES = 20_000
LOCAL = 0  # the footprint of a stream's tuple at the node that it is delegated to

Made = dict[int, tuple[tuple[int, int], ...]]  # footprint -> (stream, footprint of its part)


@dataclass(frozen=True, slots=True)
class Footprints:
    """By node: what it makes of what, and by (stream, footprint), what comes to it from where."""

    made: tuple[Made, ...]
    coming: tuple[dict[tuple[int, int], tuple[int, ...]], ...]
    whole: int  # of results

    def leaving(self, node: int) -> Iterator[int]:
        return iter(self.made[node])


def footprints(djg: DistributedJoinGraph) -> Footprints:
    """All that can happen, whatever is chosen: grown until nothing new comes."""
    count = len(djg.nodes)
    made: list[Made] = [{} for _ in djg.nodes]
    coming: list[dict[tuple[int, int], list[int]]] = [{} for _ in djg.nodes]
    for number, node in enumerate(djg.nodes):
        for stream in node.local:
            coming[number][stream, LOCAL] = []
    new = set(range(count))
    while new:
        number = min(new)
        new.discard(number)
        for footprint, parts in _combined(djg, number, coming[number]):
            if footprint in made[number]:
                continue
            made[number][footprint] = parts
            if sum(map(len, made)) > MOST_CLASSES:
                raise JoinGraphError(
                    f"{count} nodes allow more than {MOST_CLASSES:,} footprints: "
                    "give more edges to one site"
                )
            for target, stream in next_nodes(djg, footprint):
                sources = coming[target].setdefault((stream, footprint), [])
                sources.append(number)
                new.add(target)
    whole = (1 << count) - 1
    for number in range(count):
        for sources in coming[number].values():
            sources.sort()
    return Footprints(
        tuple(made), tuple({k: tuple(v) for k, v in sorted(c.items())} for c in coming), whole
    )


def streams_of(djg: DistributedJoinGraph, footprint: int) -> set[int]:
    return {s for i, n in enumerate(djg.nodes) if footprint >> i & 1 for s in n.streams}


def next_nodes(djg: DistributedJoinGraph, footprint: int) -> list[tuple[int, int]]:
    """Where a row may go: to nodes that it has not been to and that join a stream of it."""
    held = streams_of(djg, footprint)
    found = []
    for number, node in enumerate(djg.nodes):
        if not footprint >> number & 1 and node.edges:
            found += [(number, s) for s in node.streams if s in held]
    return found


def _combined(
    djg: DistributedJoinGraph, number: int, coming: dict[tuple[int, int], list[int]]
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """All footprints that the node can make of what comes."""
    node = djg.nodes[number]
    choices = [[f for s, f in coming if s == stream] for stream in node.streams]
    for chosen in product(*choices):
        footprint = 1 << number
        for part in chosen:
            footprint |= part
        yield footprint, tuple(zip(node.streams, chosen, strict=True))
