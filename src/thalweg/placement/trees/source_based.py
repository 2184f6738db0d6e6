"""Everybody hangs at the home (COSMOS 4.4.1, peer 2): no node helps another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE, ints
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes


class SourceBased:
    name = "source-based"
    about = "every node is served by the home itself"

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        def star(cargo: Cargo) -> np.ndarray:
            parent = np.where(cargo.members, HOME, NONE)
            parent[HOME] = NONE
            return parent

        return tuple(ints(star(c)) for c in cargos)
