"""The cheapest placement within a bound on latency, among hosts that could be part of it.

From the sources up, every node has a front at each of its hosts: arrivals from all hosts of an
input, of which the best are kept, then all inputs together. A partial placement is dropped when it
can't be in time any more, or when with the least that the rest costs it exceeds `most`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thalweg.placement.arrays import Floats, Ints, ints
from thalweg.placement.sand.configurations import priced
from thalweg.placement.sand.dynamic import distances, least_rest_ms
from thalweg.placement.sand.multipliers import Narrowed
from thalweg.placement.sand.pareto import NOTHING, START, Front, both, front
from thalweg.placement.sand.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class _Partials:
    """The fronts of one node at all its hosts, in one piece."""

    host: NDArray[np.int64]  # position among the node's hosts
    delay_ms: Floats
    cost: Floats

    def after(self, ways: Floats, price: float) -> tuple[Floats, Floats]:
        """Delay and cost of each on arrival, over a way from each host."""
        return self.delay_ms + ways[self.host], self.cost + priced(price, ways)[self.host]


def search(
    tree: Tree, narrowed: Narrowed, latency_ms: Floats, limit_ms: float, most: float
) -> Ints | None:
    """None if nothing within the limit costs `most` or less; else the cheapest of all."""
    rest_ms = least_rest_ms(tree, narrowed.hosts, latency_ms)
    known: list[_Partials] = []
    for node in range(len(tree)):
        room = limit_ms - rest_ms[node]
        fronts = _fronts(tree, narrowed, latency_ms, known, node, room)
        kept = []
        for host, found in enumerate(fronts):
            least = found.cost + narrowed.multipliers[node] * found.delay_ms
            kept.append(found.kept(least + narrowed.rest[node][host] <= most))
        known.append(_joined(kept))
        if not len(known[-1].cost):
            return None
    if known[tree.root].cost.min() > most:  # the prices took off what is left of its bound
        return None
    return _read_off(tree, narrowed, latency_ms, known)


def _fronts(
    tree: Tree,
    narrowed: Narrowed,
    latency_ms: Floats,
    known: list[_Partials],
    node: int,
    room_ms: Floats,
) -> list[Front]:
    """By host: what of all inputs arrives there with room for the rest of the way."""
    fronts = [START] * len(narrowed.hosts[node])
    for below in tree.inputs[node]:
        ways = distances(narrowed.hosts, latency_ms, below, node)
        rate = float(tree.rate_bps[below])
        for host, so_far in enumerate(fronts):
            if len(so_far):
                delay, cost = known[below].after(ways[:, host], rate)
                fits = delay <= room_ms[host]
                fronts[host] = both(so_far, front(delay[fits], cost[fits]))
    return fronts


def _joined(fronts: list[Front]) -> _Partials:
    fronts = fronts or [NOTHING]
    return _Partials(
        np.repeat(np.arange(len(fronts)), [len(f) for f in fronts]),
        np.concatenate([f.delay_ms for f in fronts]),
        np.concatenate([f.cost for f in fronts]),
    )


def _read_off(tree: Tree, narrowed: Narrowed, latency_ms: Floats, known: list[_Partials]) -> Ints:
    """From the root down: of each input, the cheapest that is no later than the front says."""
    at = np.empty(len(tree), np.int32)
    within = np.empty(len(tree))
    best = int(np.argmin(known[tree.root].cost))
    at[tree.root], within[tree.root] = tree.proxy, known[tree.root].delay_ms[best]
    for node in range(tree.root - 1, -1, -1):
        above = int(tree.parent[node])
        ways = latency_ms[narrowed.hosts[node], at[above]]
        delay, cost = known[node].after(ways, float(tree.rate_bps[node]))
        chosen = int(np.argmin(np.where(delay <= within[above], cost, np.inf)))
        at[node] = narrowed.hosts[node][known[node].host[chosen]]
        within[node] = known[node].delay_ms[chosen]
    return ints(at)
