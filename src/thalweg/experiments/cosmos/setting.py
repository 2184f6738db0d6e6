"""The network of COSMOS 3.4: 4,096 nodes, of which 256 are providers and 100 sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.delivery import Trees
from thalweg.placement.cosmos.model import Network
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.topology import Ints, Topology

NODES = 4_096
SOURCES = 100
US_PER_MS = 1_000


@dataclass(frozen=True)
class Setting:
    topology: Topology
    providers: Ints  # nodes
    sources: Ints  # nodes
    network: Network
    trees: Trees


def setting(
    seed: int, *, providers: int = 256, sources: int = SOURCES, nodes: int = NODES
) -> Setting:
    what = transit_stub.COSMOS_4096 if nodes == NODES else transit_stub.small(nodes)
    made = transit_stub.generate(what, seed)
    if providers + sources > len(made.stubs):
        raise ValueError(f"{providers} providers and {sources} sources don't fit on {nodes} nodes")
    nodes = np.random.default_rng([seed, 3]).permutation(made.stubs)
    at, entering = nodes[:providers], nodes[providers : providers + sources]
    weights = made.weights()
    between_us = dijkstra(weights, indices=at)[:, at]
    from_us, before = dijkstra(weights, indices=entering, return_predecessors=True)
    network = Network(
        floats(between_us / US_PER_MS),
        floats(from_us[:, at] / US_PER_MS),
        floats(np.ones(providers)),
    )
    pairs = [_tree(b, d, at) for b, d in zip(before, from_us, strict=True)]
    trees = Trees(tuple(p for p, _ in pairs), tuple(ms for _, ms in pairs))
    return Setting(made, at, entering, network, trees)


def _tree(
    before: np.ndarray, from_us: np.ndarray, providers: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """The paths of one source to all providers; a link is named by its far end."""
    links, reached = [], []
    at, which = providers.copy(), np.arange(len(providers))
    while len(at):
        on_the_way = before[at] >= 0  # the source itself has no node before it
        at, which = at[on_the_way], which[on_the_way]
        links.append(at)
        reached.append(which)
        at = before[at]
    far_end, numbers = np.unique(np.concatenate(links), return_inverse=True)
    to = np.concatenate(reached)
    shape = (len(far_end), len(providers))
    paths = csr_array((np.ones(len(to), np.float32), (numbers, to)), shape=shape)
    return paths, (from_us[far_end] - from_us[before[far_end]]) / US_PER_MS
