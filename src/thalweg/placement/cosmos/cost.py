"""What a mapping costs: the weighted edge cut (COSMOS, equation 3.4), and what it makes of load.

The edges between queries weigh the rates of what both ends want, so their part of the sum

    Σ_{pairs of queries} Σ_{substreams s of both} r_s · d(i, j)  =  ½ Σ_s r_s Σ_{a,b} n_as n_bs d_ab

needs just n_as, the number of queries at provider a that want substream s. Every edge counts once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats, Ints, floats
from thalweg.placement.cosmos.model import Network, Sparse, Substreams, Vertices, summed

Counts = npt.NDArray[np.float32]  # [place, substream]

_FEW = 16  # places


@dataclass(frozen=True, slots=True)
class Cut:
    """The three kinds of edges, each summed up as rate × latency."""

    sources: float
    overlaps: float
    results: float

    @property
    def total(self) -> float:
        return self.sources + self.overlaps + self.results


def counts(interests: Sparse, mapping: Ints, places: int) -> Counts:
    """How many queries at each place want each substream."""
    substreams = interests.shape[1]
    if places <= _FEW:  # one product, without a temporary array for each entry
        here = np.zeros((len(mapping), places), np.float32)
        here[np.arange(len(mapping)), mapping] = 1
        few: Counts = (interests.T @ here).T
        return few
    place = np.repeat(np.asarray(mapping, np.int64) * substreams, np.diff(interests.indptr))
    found = np.bincount(place + interests.indices, interests.data, places * substreams)
    return found.reshape(places, substreams).astype(np.float32)


def weighted_edge_cut(
    network: Network, substreams: Substreams, vertices: Vertices, mapping: Ints
) -> Cut:
    wanting = counts(vertices.interests, mapping, len(network))
    rate = substreams.rate_bps
    way_ms = network.source_ms[substreams.source]  # [substream, provider]
    sources = float(np.einsum("as,sa,s->", wanting, way_ms, rate))
    reached = network.latency_ms @ wanting
    overlaps = 0.5 * float(np.einsum("as,as,s->", wanting, reached, rate))
    proxies = summed(vertices.results, mapping, len(network))
    results = float(proxies.multiply(network.latency_ms).sum())
    return Cut(sources, overlaps, results)


def loads(weight: Floats, mapping: Ints, places: int) -> Floats:
    return floats(np.bincount(mapping, weight, places))


def imbalance(load: Floats, capability: Floats) -> float:
    """The largest load against its share; (3.3) holds where this is at most 1 + slack."""
    able = capability > 0
    if (load[~able] > 0).any():
        return float("inf")
    share = load.sum() * capability[able] / capability.sum()
    return float((load[able] / share).max()) if load.sum() > 0 else 0.0


def spread(load: Floats, capability: Floats) -> float:
    """The standard deviation of load for each unit of capability, over their mean (fig. 3.9b)."""
    able = capability > 0
    relative = load[able] / capability[able]
    return float(relative.std() / relative.mean()) if load.sum() > 0 else 0.0
