"""Adaptation in rounds over a whole tree, with what nodes measure instead of what is true.

The decisions are the protocol's own (`overlay/trees/transformations`): the token goes down from the
home, and each node performs the best transformation that it knows of (COSMOS, Algorithm 4.1). What
a node knows is measured in windows and told only when it has changed by a factor of 1 + τ (4.2.2).
`tests/experiments/trees` lets the protocol itself do the same in the simulator.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

from thalweg.overlay.trees.transformations.choice import best
from thalweg.placement.arrays import Floats
from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes
from thalweg.placement.trees.seeing import view_of

TAU = 0.2


def changed(told: Floats, measured: Floats, tau: float = TAU) -> Floats:
    """What the others know afterwards: the old value, unless it has changed enough."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(told > 0, measured / told, np.inf)
    news = (ratio >= 1 + tau) | (ratio <= 1 / (1 + tau))
    found: Floats = np.where(news & (measured > 0), measured, told)
    return found


@dataclass
class Rounds:
    """Trees that adapt; `least` is the part of a view's cost that a change must be worth."""

    forest: Forest
    least: float = 0.0
    done: Counter[str] = field(default_factory=Counter)

    def round(self, nodes: Nodes, cargos: list[Cargo]) -> int:
        """One round in each tree, by these (told) values; how many transformations."""
        ledger = Ledger(nodes, cargos, self.forest)
        before = sum(self.done.values())
        for tree in range(len(cargos)):
            self._round(ledger, nodes, cargos, tree)
        self.forest = ledger.forest()
        return sum(self.done.values()) - before

    def _round(self, ledger: Ledger, nodes: Nodes, cargos: list[Cargo], tree: int) -> None:
        waiting = deque([HOME])
        while waiting:
            node = waiting.popleft()
            view, ids = view_of(ledger, nodes, cargos[tree], tree, node)
            if len(ids) > 2:
                choice = best(view, self.least * float(view.cost.sum()) + 1e-12)
                if choice is not None:
                    self.done[choice.transformation] += 1
                    for moved, to in choice.moves:
                        move = ledger.move(tree, int(ids[moved]), int(ids[to]))
                        assert move is not None
                        ledger.carry_out(move)
            children = ledger.children[tree]
            waiting.extend(c for c in children[node] if children[c])
