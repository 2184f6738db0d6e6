"""The delivered cost of a mapping: each substream once over each link of its tree (COSMOS 3.3).

The weighted edge cut counts pairs of queries, and so grows with their square. What the network
carries is less: the data overlay sends a substream over a link once, however many want it beyond.
Here a substream's tree is the union of the shortest paths from its source to all who want it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.model import Sparse, Substreams, Vertices


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """For each source the links on its shortest paths to the providers.

    `paths[source]` is sparse, [link, provider]: 1 where the link is on the way to the provider;
    `link_ms[source]` has the latency of each of these links.
    """

    paths: tuple[Sparse, ...]
    link_ms: tuple[Floats, ...]


def direct(source_ms: Floats) -> Trees:
    """Where nothing is known of the links between, each provider is reached by one of its own."""
    hosts = source_ms.shape[1]
    paths = tuple(eye_array(hosts, format="csr", dtype=np.float32) for _ in source_ms)
    return Trees(paths, tuple(source_ms))


def delivered_cost(
    trees: Trees, substreams: Substreams, vertices: Vertices, mapping: Ints
) -> float:
    """Σ rate × latency over the links of all trees."""
    providers = trees.paths[0].shape[1] if trees.paths else 0
    wanted = (counts(vertices.interests, mapping, providers) > 0).astype(np.float32)
    total = 0.0
    for source, (paths, link_ms) in enumerate(zip(trees.paths, trees.link_ms, strict=True)):
        entering = np.flatnonzero(substreams.source == source)
        used = (paths @ wanted[:, entering]) > 0
        total += float(link_ms @ (used @ substreams.rate_bps[entering]))
    return total


def results_cost(latency_ms: Floats, vertices: Vertices, mapping: Ints) -> float:
    """Results go to their proxies one by one; no two are the same."""
    rows = vertices.results.tocoo()
    return float((rows.data * latency_ms[mapping[rows.row], rows.col]).sum())
