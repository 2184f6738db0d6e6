"""Delays between nodes that are not neighbours: the shortest paths of a topology.

Dijkstra in blocks of rows, so that a 4,096-node matrix of 64 MB is made beside scratch space of a
few MB instead of a float matrix of twice its size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from thalweg.sim.networks.topology import BadTopology, Ints, Topology

_ROWS_AT_ONCE = 128


def between(topology: Topology, nodes: Ints | None = None) -> Ints:
    """Delays in microseconds between all nodes, or among `nodes` (in their order)."""
    chosen = np.arange(topology.nodes, dtype=np.int32) if nodes is None else np.asarray(nodes)
    _check(topology, chosen)
    weights = topology.weights()
    matrix = np.empty((len(chosen), len(chosen)), dtype=np.int32)
    for first in range(0, len(chosen), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        # Sums of integers below 2^53 are exact in float64, and so symmetric.
        distances = dijkstra(weights, indices=chosen[rows])[:, chosen]
        if distances.max() > np.iinfo(np.int32).max:
            raise BadTopology(f"{topology.name}: a path takes more than 35 minutes (2^31 µs)")
        matrix[rows] = distances
    return matrix


def paths_from(topology: Topology, node: int) -> Ints:
    """For each node, the one before it on the shortest path from `node`; `node` has itself."""
    _check(topology, np.asarray([node]))
    _, before = dijkstra(topology.weights(), indices=node, return_predecessors=True)
    before[node] = node
    return before.astype(np.int32)


def path(before: Ints, to: int) -> list[int]:
    """The nodes of one path of `paths_from`, from its source to `to`."""
    nodes = [to]
    while before[nodes[-1]] != nodes[-1]:
        nodes.append(int(before[nodes[-1]]))
    return nodes[::-1]


def diameter(latency_us: Ints) -> int:
    """The longest of the shortest delays."""
    return int(latency_us.max())


def mean(latency_us: Ints) -> float:
    """Over pairs of different nodes."""
    count = len(latency_us)
    total: NDArray[np.int64] = latency_us.sum(dtype=np.int64)
    return float(total) / max(1, count * (count - 1))


def _check(topology: Topology, nodes: NDArray[np.integer]) -> None:
    outside = nodes[(nodes < 0) | (nodes >= topology.nodes)]
    if len(outside):
        raise BadTopology(
            f"{topology.name}: there is no node {outside[0]}; there are 0 to {topology.nodes - 1}"
        )
