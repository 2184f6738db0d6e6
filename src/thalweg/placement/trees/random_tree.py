"""Nodes join in random order, each under a random one (COSMOS 4.4.1, peer 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes


class RandomTree:
    name = "random"
    about = "each node joins at a random one: what nobody's statistics would give"

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        rng = np.random.default_rng([seed, 41])
        return tuple(_grown(rng, c, len(nodes)) for c in cargos)


def _grown(rng: np.random.Generator, cargo: Cargo, count: int) -> Ints:
    joining = np.flatnonzero(cargo.members)
    order = np.concatenate(([HOME], rng.permutation(joining[joining != HOME])))
    parent = np.full(count, NONE)
    for i in range(1, len(order)):
        parent[order[i]] = order[rng.integers(i)]
    return ints(parent)
