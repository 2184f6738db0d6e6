"""A query to be placed across the overlay: SAND's processing tree (3.1), with hosts by address."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.sand.configurations import Placer
from thalweg.placement.sand.edge import edge
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.tree import Tree, TreeError

ALGORITHMS = ("edge", "edge+", "in-network")


class TreeNode(msgspec.Struct, frozen=True, gc=False):
    """As a row of `placement.sand.tree.Tree`."""

    name: str
    parent: int  # NONE for the root
    rate_bps: float
    pinned: Address | None


class TreeQuery(msgspec.Struct, frozen=True):
    """Nodes in mail-order, inputs first; the root, which stands for delivery, at the proxy."""

    name: str
    nodes: tuple[TreeNode, ...]
    bound_ms: float = inf
    algorithm: str = "edge"
    k: int = 8  # hosts in between that In-Network tries
    levels: int = 1  # of operators in a zone; 1 is the finely-grained extreme of 4.1

    @property
    def root(self) -> int:
        return len(self.nodes) - 1

    @property
    def bounded(self) -> bool:
        return self.bound_ms < inf

    @property
    def proxy(self) -> Address:
        found = self.nodes[-1].pinned
        assert found is not None
        return found


def placer_named(algorithm: str, k: int) -> Placer:
    placers: dict[str, Placer] = {"edge": edge, "edge+": edge_plus, "in-network": in_network(k)}
    return placers[algorithm]


def checked_tree(query: TreeQuery) -> Tree:
    """The tree, if it is one; hosts are numbered by their addresses' order."""
    if query.algorithm not in ALGORITHMS:
        raise TreeError(
            f"{query.name}: no algorithm {query.algorithm!r}; there are {', '.join(ALGORITHMS)}"
        )
    if query.levels < 1 or query.k < 0:
        raise TreeError(f"{query.name}: a zone has a level or more, and k is not negative")
    hosts = sorted({n.pinned for n in query.nodes if n.pinned is not None})
    number = {address: i for i, address in enumerate(hosts)}
    return Tree(
        query.name,
        tuple(n.name for n in query.nodes),
        ints(n.parent for n in query.nodes),
        floats(n.rate_bps for n in query.nodes),
        ints(NONE if n.pinned is None else number[n.pinned] for n in query.nodes),
        query.bound_ms,
    )


def query_of(
    tree: Tree, addresses: Sequence[Address], algorithm: str = "edge", levels: int = 1, k: int = 8
) -> TreeQuery:
    """A tree over numbered hosts, as a query over named ones."""
    nodes = tuple(
        TreeNode(
            tree.names[i],
            int(tree.parent[i]),
            float(tree.rate_bps[i]),
            None if tree.pinned[i] == NONE else addresses[int(tree.pinned[i])],
        )
        for i in range(len(tree))
    )
    return TreeQuery(tree.name, nodes, tree.bound_ms, algorithm, k, levels)
