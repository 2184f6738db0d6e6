"""Zones: the parts of a tree that one coordinator each places (SAND 4.1).

A zone takes `levels` levels of operators, counted from the sources, so that the many zones at the
bottom are full ones; the root, which stands for delivery, goes with the operators right below it.
A coordinator learns with its zone all that the leaf-to-root paths of its operators would tell it:
who places the zone above, where the way to the proxy leads, and the common locations of all
ancestors, at which it has to state a cost (4.2). So MAP messages need not repeat the paths.
"""

from __future__ import annotations

from functools import reduce
from math import inf

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.overlay.routing import id_of
from thalweg.overlay.sand.query import TreeQuery, checked_tree
from thalweg.placement.arrays import NONE
from thalweg.placement.sand.tree import Tree


class ZoneOperator(msgspec.Struct, frozen=True):
    node: int
    inputs: tuple[int, ...]
    rates_bps: tuple[float, ...]  # of the inputs
    pinned: Address | None
    onward: tuple[Address, ...]  # where its result must pass: the next pinned one, …, the proxy


class Boundary(msgspec.Struct, frozen=True, gc=False):
    """An input from below the zone: the top of another zone, or a source at its host."""

    node: int
    source: Address | None


class Zone(msgspec.Struct, frozen=True):
    """Known by its top's number in the tree."""

    query: str
    top: int
    operators: tuple[ZoneOperator, ...]  # inputs first, the top last
    boundary: tuple[Boundary, ...]
    above: int  # the zone that takes what the top gives; NONE: the top is the root
    common: tuple[Address, ...]  # of all ancestors of the top
    algorithm: str
    k: int
    bound_ms: float

    @property
    def onward(self) -> tuple[Address, ...]:
        return self.operators[-1].onward

    @property
    def is_measured(self) -> bool:
        return self.algorithm != "edge" or self.bound_ms < inf


def zone_key(query: str, zone: int) -> int:
    """Its coordinator is the peer that this identifier belongs to."""
    return id_of(f"{query}/{zone}")


def zone_tops(query: TreeQuery, tree: Tree) -> list[int]:
    """Of each node that is no source, the top of its zone; NONE for sources."""
    depth = [0] * len(tree)  # of the part of the zone below a node
    is_top = [node == tree.root for node in range(len(tree))]
    for node in range(tree.root):
        if tree.inputs[node]:
            depth[node] = 1 + max(0 if is_top[i] else depth[i] for i in tree.inputs[node])
            is_top[node] = depth[node] == query.levels and tree.parent[node] != tree.root
    top = [NONE] * len(tree)
    for node in range(tree.root, -1, -1):
        if tree.inputs[node]:
            top[node] = node if is_top[node] else top[int(tree.parent[node])]
    return top


def cut(query: TreeQuery) -> tuple[Zone, ...]:
    """The zones of a tree, the lowest first; raises TreeError for what is no tree."""
    tree = checked_tree(query)
    tops = zone_tops(query, tree)
    onward, common = _onward(query, tree), _common_above(query, tree)
    return tuple(
        _zone(query, tree, tops, top, onward, common)
        for top in dict.fromkeys(t for t in sorted(tops) if t != NONE)
    )


def _zone(
    query: TreeQuery,
    tree: Tree,
    tops: list[int],
    top: int,
    onward: list[tuple[Address, ...]],
    common: list[tuple[Address, ...]],
) -> Zone:
    members = [node for node in range(len(tree)) if tops[node] == top]
    operators = tuple(
        ZoneOperator(
            node,
            tree.inputs[node],
            tuple(query.nodes[i].rate_bps for i in tree.inputs[node]),
            query.nodes[node].pinned,
            onward[node],
        )
        for node in members
    )
    below = [i for node in members for i in tree.inputs[node] if tops[i] != top]
    boundary = tuple(Boundary(i, query.nodes[i].pinned if tops[i] == NONE else None) for i in below)
    above = NONE if top == tree.root else tops[int(tree.parent[top])]
    return Zone(
        query.name,
        top,
        operators,
        boundary,
        above,
        common[top],
        query.algorithm,
        query.k,
        query.bound_ms,
    )


def _onward(query: TreeQuery, tree: Tree) -> list[tuple[Address, ...]]:
    found: list[tuple[Address, ...]] = [(query.proxy,)] * len(tree)
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        pinned = query.nodes[above].pinned
        passes = pinned is not None and above != tree.root
        found[node] = (pinned, *found[above]) if passes and pinned is not None else found[above]
    return found


def _common_above(query: TreeQuery, tree: Tree) -> list[tuple[Address, ...]]:
    """Of each node, the common locations cl (3.2) of all its ancestors that have a choice."""
    leaves: list[frozenset[Address]] = []
    for node, below in enumerate(tree.inputs):
        own = query.nodes[node].pinned
        sources = [leaves[i] for i in below] if below else [frozenset({own} if own else ())]
        leaves.append(frozenset().union(*sources))
    found: list[tuple[Address, ...]] = [()] * len(tree)
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        shared: frozenset[Address] = frozenset()
        if query.nodes[above].pinned is None:
            shared = reduce(frozenset.intersection, [leaves[i] for i in tree.inputs[above]])
        found[node] = tuple(sorted({*found[above], *shared}))
    return found
