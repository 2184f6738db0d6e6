"""Simulated annealing (COSMOS 4.2.3, Algorithm 4.3), with the source's parameters.

T₀ is twice the cost of a random forest; at each temperature 64 moves for each node of the system,
each of a random node's subtree to a random other node; T falls to 0.95 T; frozen when T < 0.001 and
the best has not changed for 10 temperatures. The unit is a node's mean loss in the first forest,
and a move is judged by the change of the *summed* loss: a T of 0.001 is cold, whatever the rates.
(If a move counted by the mean over 256 nodes, four of five would be accepted to the end.)

With several trees a move picks a tree first, as often as it has nodes. The best is kept by the list
of moves since the last best, as copying 256 parents for each would cost more than the move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes
from thalweg.placement.trees.random_tree import RandomTree


@dataclass(frozen=True, slots=True)
class Cooling:
    """The source's first set of parameters (4.2.3)."""

    start: float = 2.0  # T₀; temperatures are in mean losses of a node in the first forest
    moves_per_node: int = 64  # at each temperature
    factor: float = 0.95
    cold: float = 0.001
    patience: int = 10  # temperatures without a better best, once cold


SHORT = Cooling(moves_per_node=16, cold=0.0015)  # its second set, in 4.4.4


class Annealing:
    name = "SA"
    about = "simulated annealing over single moves"

    def __init__(self, cooling: Cooling | None = None, start: Forest | None = None) -> None:
        self._cooling = cooling or Cooling()
        self._start = start

    def build(self, nodes: Nodes, cargos: Sequence[Cargo], seed: int = 0) -> Forest:
        start = self._start or RandomTree().build(nodes, cargos, seed)
        ledger = Ledger(nodes, cargos, start)
        rng, cooling = np.random.default_rng([seed, 43]), self._cooling
        trees, members = _places(ledger)
        if not len(trees):
            return start
        unit = ledger.total / max(1, len(nodes) - 1)
        temperature, cold = cooling.start * unit, cooling.cold * unit
        best, least, unchanged = ledger.forest(), ledger.total, 0
        while temperature >= cold or unchanged < cooling.patience:
            ledger.refresh()
            found = _cool(ledger, rng, trees, members, cooling, len(nodes), temperature, least)
            unchanged = unchanged + 1 if found is None else 0
            if found is not None:
                best, least = found
            temperature *= cooling.factor
        return best


def _places(ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
    """Every (tree, node) that can move."""
    found = [(t, i) for t, nodes in enumerate(ledger.members) for i in nodes if i != HOME]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _cool(
    ledger: Ledger,
    rng: np.random.Generator,
    trees: np.ndarray,
    members: np.ndarray,
    cooling: Cooling,
    count: int,
    temperature: float,
    least: float,
) -> tuple[Forest, float] | None:
    """One temperature; the best forest on the way, if it is better than the best so far."""
    moves = cooling.moves_per_node * count
    chosen = rng.integers(len(trees), size=moves)
    tree_of, node_of = trees[chosen].tolist(), members[chosen].tolist()
    where = rng.random(moves).tolist()
    luck = (-temperature * np.log(rng.random(moves))).tolist()  # a loss of less is accepted
    tried, carry_out, among = ledger.move, ledger.carry_out, ledger.members
    parents = ledger.forest()
    since: list[tuple[int, int, int]] = []
    best_at = -1
    for tree, node, part, accepted in zip(tree_of, node_of, where, luck, strict=True):
        others = among[tree]
        to = others[int(part * len(others))]
        if to == node:
            continue
        move = tried(tree, node, to)
        if move is not None and (move.delta <= 0 or move.delta < accepted):
            carry_out(move)
            since.append((tree, node, to))
            if ledger.total < least - 1e-12:
                least, best_at = ledger.total, len(since)
    if best_at < 0:
        return None
    best = [p.copy() for p in parents]
    for tree, node, to in since[:best_at]:
        best[tree][node] = to
    return tuple(best), least
