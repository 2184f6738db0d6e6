"""What no tree can beat: a lower bound on the loss, for instances of any size.

Beyond the source. Two things hold in every tree, and both bounds follow from them:

- *Ways*: a row reaches a node over some path, and pays for each edge its delay and at each node the
  time to check and send one row. So no node is reached sooner than by the cheapest path.
- *Turns*: a node serves its children one after the other. In the model each of c children waits for
  half of the others, which is no better than the heaviest first, the j-th after j checks. So the
  m-th node to be reached is not reached sooner than if the quickest m nodes helped from the start
  on and every edge were the shortest. (Of many objects, a child may want few: turns take no time.)

Heavy nodes first, the sum over both is a bound; so is the sum over the ways alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from scipy.sparse.csgraph import dijkstra

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.model import HOME, Cargo, Nodes


def cheapest_ways(nodes: Nodes) -> Floats:
    """How soon a row can be at each node, if it were the only one."""
    costs = nodes.delay_s + (nodes.filter_s + nodes.send_s)[:, None]
    np.fill_diagonal(costs, 0)
    found: Floats = dijkstra(np.maximum(costs, 1e-12), indices=HOME)
    return found


def lower_bound(nodes: Nodes, cargos: Sequence[Cargo]) -> float:
    """On AvgLF, for a tree for each cargo."""
    ways = cheapest_ways(nodes)
    total = sum(max(float(c.weight @ ways), _by_turns(nodes, c, ways)) for c in cargos)
    return total / max(1, len(nodes) - 1)


def _by_turns(nodes: Nodes, cargo: Cargo, ways: Floats) -> float:
    reached = np.flatnonzero(cargo.members)
    reached = reached[reached != HOME]
    if not len(reached):
        return 0.0
    within = np.ix_(np.flatnonzero(cargo.members), reached)
    between = nodes.delay_s[within].copy()
    between[nodes.delay_s[within] <= 0] = np.inf
    shortest = float(between.min()) if np.isfinite(between).any() else 0.0
    soonest = np.maximum(_soonest(nodes, cargo, reached, shortest), np.sort(ways[reached]))
    return float(np.sort(cargo.weight[reached])[::-1] @ soonest)


def _soonest(nodes: Nodes, cargo: Cargo, reached: np.ndarray, shortest: float) -> Floats:
    """When the m-th node can be reached: the quickest helpers first, all edges the shortest."""
    filters = [float(nodes.filter_s[HOME]), *np.sort(nodes.filter_s[reached]).tolist()]
    sends = [float(nodes.send_s[HOME]), *np.sort(nodes.send_s[reached]).tolist()]
    first_s = filters[0] + sends[0] + shortest
    if cargo.own.shape[1] > 1:
        return np.full(len(reached), first_s)
    ready = [(first_s, 0)]  # when a helper's next child is reached
    found: list[float] = []
    while len(found) < len(reached):
        at, helper = heapq.heappop(ready)
        found.append(at)
        new = len(found)
        heapq.heappush(ready, (at + filters[helper], helper))
        heapq.heappush(ready, (at + filters[new] + sends[new] + shortest, new))
    return np.array(found)
