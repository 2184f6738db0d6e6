"""What trees are built from: nodes with delays and times, and what each tree carries.

Source: COSMOS (seed 000) 4.1.1, 4.2.1, 4.3. Node 0 is the home of the streams, the source's s. A
`Cargo` is what one tree carries: one object, or many (4.3.1); a tree for each object is a list of
cargos (4.3.2). What a node and all below it want of an object is its *demand*:

- *nested*: a rate. Who wants more gets all that others get, so a union's rate is the highest (the
  source's r^m, and its synthetic data);
- *classes*: a set of tolerance classes, as bits. A union's rate is looked up (`union_rates.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import NONE, Flags, Floats, Ints

HOME = 0

Demands = npt.NDArray[Any]  # rows of nodes, columns of objects: rates, or sets of classes
Forest = tuple[Ints, ...]  # the parent of each node, in each tree; NONE for home and strangers


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    delay_s: Floats  # between all pairs
    filter_s: Floats  # t^p: to see whether a child wants a row
    send_s: Floats  # t^c: to send it

    def __post_init__(self) -> None:
        count = len(self.filter_s)
        if self.delay_s.shape != (count, count) or len(self.send_s) != count:
            raise ValueError(
                f"delays of {self.delay_s.shape}, {count} filtering times and {len(self.send_s)} "
                f"sending times: they must be about the same nodes"
            )
        if min(self.delay_s.min(), self.filter_s.min(), self.send_s.min()) < 0:
            raise ValueError("delays and times can't be negative")

    def __len__(self) -> int:
        return len(self.filter_s)


@dataclass(frozen=True, slots=True, eq=False)
class Cargo:
    """What one tree carries, and to whom."""

    own: Demands  # of each node itself, [nodes, objects]
    weight: Floats  # u of (4.12): what a second of delay costs this node
    union_rate: Floats | None = None  # [objects, 2^classes]; None: demands are nested rates

    def __post_init__(self) -> None:
        if self.own.ndim != 2 or self.own.shape[0] != len(self.weight):
            raise ValueError("a demand for each node and object, and a weight for each node")
        if self.own[HOME].any() or self.weight[HOME]:
            raise ValueError("the home has all rows: it demands none")
        if self.union_rate is not None and len(self.union_rate) != self.own.shape[1]:
            raise ValueError("a table of union rates for each object")

    @property
    def members(self) -> Flags:
        """Who is in the tree: the home, and all who want something."""
        found: Flags = np.asarray(self.own.any(axis=1))
        found[HOME] = True
        return found

    def join(self, one: Demands, other: Demands) -> Demands:
        found: Demands = (
            np.maximum(one, other) if self.union_rate is None else np.bitwise_or(one, other)
        )
        return found

    def rates(self, demands: Demands) -> Floats:
        """Rows a second, by object (the last axis)."""
        if self.union_rate is None:
            return demands
        found: Floats = self.union_rate[np.arange(self.own.shape[1]), demands]
        return found


def one_object(rates: Floats) -> Cargo:
    """Of nested demands, as in the source's synthetic data; the home's rate is left out."""
    own = np.asarray(rates, float).reshape(-1, 1).copy()
    own[HOME] = 0
    return Cargo(own, own[:, 0].copy())


def one_tree(own: Demands, union_rate: Floats | None = None) -> list[Cargo]:
    """One tree for all objects (4.3.1). A node's loss is the mean over the objects it wants."""
    weight = _weights(own, union_rate).sum(axis=1)
    return [Cargo(own, weight, union_rate)]


def tree_each(own: Demands, union_rate: Floats | None = None) -> list[Cargo]:
    """A tree for each object (4.3.2), among those who want it."""
    weight = _weights(own, union_rate)
    return [
        Cargo(own[:, [x]], weight[:, x].copy(), None if union_rate is None else union_rate[[x]])
        for x in range(own.shape[1])
    ]


def _weights(own: Demands, union_rate: Floats | None) -> Floats:
    rates = own if union_rate is None else union_rate[np.arange(own.shape[1]), own]
    wanted = np.maximum(1, (own != 0).sum(axis=1, keepdims=True))
    found: Floats = rates / wanted
    return found


class NoTree(ValueError):
    """Says which node has no way from the home."""


def depths(parent: Sequence[int] | Ints, members: Flags) -> Ints:
    """Edges from the home; refuses what is no tree."""
    parent = np.asarray(parent)
    depth = np.full(len(parent), NONE, np.int32)
    depth[HOME] = 0
    waiting = np.flatnonzero(members & (depth == NONE))
    while len(waiting):
        above = parent[waiting]
        reached = np.where(above >= 0, depth[above], NONE)
        placed = reached != NONE
        if not placed.any():
            raise NoTree(f"no way leads from the home to node {waiting[0]}")
        depth[waiting[placed]] = reached[placed] + 1
        waiting = waiting[~placed]
    return depth
