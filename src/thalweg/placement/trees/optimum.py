"""The best tree there is, for small instances: branch and bound over parents.

Beyond the source, which has no yardstick but its own annealing. Nodes are given parents one by one,
the heaviest first; a partial assignment is given up when no completion can beat the best so far.
The bound lets every node that hangs below an undecided one reach it by the cheapest conceivable
way. What is known of a node's children bounds its own delay from below: it only gets busier with
more of them, and it never passes on more than everything.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.bound import cheapest_ways
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import HOME, Cargo, Nodes

MOST_NODES = 11  # with the home; beyond, it takes hours


class TooLarge(ValueError):
    """Says up to which size the optimum can be computed."""


def optimum(nodes: Nodes, cargo: Cargo) -> Ints:
    """The parents of the best tree for one cargo."""
    if len(nodes) > MOST_NODES:
        raise TooLarge(f"{len(nodes)} nodes; the optimum is computed for up to {MOST_NODES}")
    starts = [
        Greedy().build(nodes, [cargo])[0],
        Annealing(Cooling(moves_per_node=16, factor=0.9)).build(nodes, [cargo])[0],
    ]
    best = min(starts, key=lambda p: loss(nodes, [cargo], (p,)))
    search = _Search(nodes, cargo, best)
    search.go(0)
    return ints(search.best)


class _Search:
    def __init__(self, nodes: Nodes, cargo: Cargo, start: Ints) -> None:
        self._nodes, self._cargo = nodes, cargo
        members = [int(i) for i in np.flatnonzero(cargo.members) if i != HOME]
        self._order = sorted(members, key=lambda i: -cargo.weight[i])
        self._parent = np.full(len(nodes), NONE)
        self._ways = cheapest_ways(nodes).tolist()
        self._delay = nodes.delay_s.tolist()
        self._weight = cargo.weight.tolist()
        self._filter, self._send = nodes.filter_s.tolist(), nodes.send_s.tolist()
        everything = cargo.own[HOME]
        for i in members:
            everything = cargo.join(everything, cargo.own[i])
        self._most = max(1e-12, float(cargo.rates(everything).sum()))
        self._rate = cargo.rates(cargo.own).sum(axis=1).tolist()
        self.best = start.copy()
        self._least = float(loss(nodes, [cargo], (start,))) * (len(nodes) - 1)

    def go(self, depth: int) -> None:
        if depth == len(self._order):
            cost = float(loss(self._nodes, [self._cargo], (ints(self._parent),)))
            cost *= len(self._nodes) - 1
            if cost < self._least - 1e-12:
                self._least, self.best = cost, self._parent.copy()
            return
        node = self._order[depth]
        below = self._below(node)
        tried = [p for p in [HOME, *self._order] if p not in below]
        for parent in sorted(tried, key=lambda p: self._ways[p] + self._delay[p][node]):
            self._parent[node] = parent
            if self._bound() < self._least - 1e-12:
                self.go(depth + 1)
        self._parent[node] = NONE

    def _below(self, node: int) -> set[int]:
        """The node, and all that would be in a circle with it as their child."""
        found = {node}
        for other in self._order:
            at, way = other, [other]
            while self._parent[at] != NONE:
                at = int(self._parent[at])
                way.append(at)
            if node in way:
                found.update(way[: way.index(node)])
        return found

    def _bound(self) -> float:
        parent = self._parent.tolist()
        children = [0] * len(parent)
        busy, highest = [0.0] * len(parent), list(self._rate)
        sends = [0.0] * len(parent)
        for node in self._order:
            if parent[node] != NONE:
                children[parent[node]] += 1
                sends[parent[node]] += self._rate[node]
                highest[parent[node]] = max(highest[parent[node]], self._rate[node])
        passing = [0.0] * len(parent)
        for node, count in enumerate(children):
            if count:
                checks = sends[node] if self._cargo.own.shape[1] > 1 else highest[node] * count
                busy[node] = self._filter[node] * checks + self._send[node] * sends[node]
                if busy[node] >= 1:
                    return float("inf")
                mean_s = busy[node] / self._most
                passing[node] = (
                    busy[node] / (1 - busy[node]) * mean_s
                    + mean_s * (1 - 1 / count) / 2
                    + self._filter[node]
                    + self._send[node]
                )
        total = 0.0
        for node in self._order:
            at, delay = node, 0.0
            while parent[at] != NONE:
                delay += self._delay[parent[at]][at] + passing[parent[at]]
                at = parent[at]
            total += self._weight[node] * (delay + self._ways[at])
        return total
