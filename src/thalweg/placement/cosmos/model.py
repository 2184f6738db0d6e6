"""The two graphs of COSMOS 3.3.1, in arrays.

*Network graph*: providers with their capabilities, and latencies between them and from the nodes
where substreams enter. *Query graph*: a q-vertex stands for one query or several; its edges to
sources and to other queries follow from its interests, its edges to proxies from its results. The
edges between queries are never listed: 60,000 queries have 1.2 billion of them, while the
interests that they follow from take 72 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from thalweg.placement.arrays import Floats, Ints, floats

Sparse = Any  # scipy.sparse.csr_array, which has no type information


class BadModel(ValueError):
    """A network or a query graph that can't be: says which vertex, and what is wrong with it."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Providers, and how far they are from one another and from the sources."""

    latency_ms: Floats  # [provider, provider]
    source_ms: Floats  # [source, provider]
    capability: Floats  # of each provider; none (0) for one that runs no queries

    def __len__(self) -> int:
        return len(self.capability)

    def __post_init__(self) -> None:
        count = len(self)
        if self.latency_ms.shape != (count, count) or self.source_ms.shape[1:] != (count,):
            raise BadModel(f"the latencies don't fit {count} providers")
        for name in ("latency_ms", "source_ms", "capability"):
            values = getattr(self, name)
            wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
            if len(wrong):
                place = "".join(f"[{i}]" for i in wrong[0])
                told = "must be finite and not negative: is there a node that can't be reached?"
                raise BadModel(f"{name}{place}: {told}")
        if not self.capability.sum() > 0:
            raise BadModel("no provider has any capability: nobody could run a query")


@dataclass(frozen=True, slots=True, eq=False)
class Substreams:
    """What sources send, cut into parts by what they contain (3.1.1)."""

    rate_bps: Floats
    source: Ints  # where each enters

    def __len__(self) -> int:
        return len(self.rate_bps)

    def __post_init__(self) -> None:
        if len(self.source) != len(self):
            raise BadModel(f"{len(self)} substreams have {len(self.source)} sources")
        wrong = ~(np.isfinite(self.rate_bps) & (self.rate_bps >= 0))
        if wrong.any():
            raise BadModel(f"rate_bps[{np.argmax(wrong)}]: must be finite and not negative")


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """The q-vertices of a query graph; a coarse one sums up those that it is made of.

    `interests` counts how many queries of a vertex want a substream. With counts instead of flags
    an edge between two coarse vertices weighs exactly what the edges between their queries do.
    """

    interests: Sparse  # [vertex, substream]: queries
    results: Sparse  # [vertex, provider]: the rate that proxy wants of its results
    weight: Floats  # load on a provider of capability 1
    state_bytes: Floats

    def __len__(self) -> int:
        return len(self.weight)

    def __post_init__(self) -> None:
        for name in ("interests", "results"):
            rows = getattr(self, name).shape[0]
            if rows != len(self):
                raise BadModel(f"{name} speak of {rows} vertices, weights of {len(self)}")
        if len(self.state_bytes) != len(self):
            raise BadModel(f"state_bytes speak of {len(self.state_bytes)} of {len(self)} vertices")
        wrong = ~(np.isfinite(self.weight) & (self.weight >= 0))
        if wrong.any():
            raise BadModel(f"weight[{np.argmax(wrong)}]: must be finite and not negative")

    def merged(self, into: npt.NDArray[np.integer], count: int) -> Vertices:
        """Vertices that collapse: vertex i becomes part of vertex `into[i]`, of `count`."""
        return Vertices(
            summed(self.interests, into, count),
            summed(self.results, into, count),
            floats(np.bincount(into, self.weight, count)),
            floats(np.bincount(into, self.state_bytes, count)),
        )

    def chosen(self, which: npt.NDArray[Any]) -> Vertices:
        return Vertices(
            self.interests[which],
            self.results[which],
            floats(self.weight[which]),
            floats(self.state_bytes[which]),
        )


def stacked(parts: list[Vertices]) -> Vertices:
    """The vertices of several graphs as one graph."""
    return Vertices(
        vstack([p.interests for p in parts], format="csr"),
        vstack([p.results for p in parts], format="csr"),
        floats(np.concatenate([p.weight for p in parts])),
        floats(np.concatenate([p.state_bytes for p in parts])),
    )


def summed(rows: Sparse, into: npt.NDArray[np.integer], count: int) -> Sparse:
    """Sums of rows: row i is added to row `into[i]`."""
    ones = np.ones(len(into), rows.dtype)
    return csr_array((ones, (into, np.arange(len(into)))), shape=(count, len(into))) @ rows


@dataclass(frozen=True, slots=True)
class Balance:
    """No provider gets more than (1 + slack) times its share of the load (3.3)."""

    slack: float = 0.1

    def __post_init__(self) -> None:
        if not self.slack >= 0:
            raise BadModel("the slack of the load bound can't be negative")

    def limits(self, weight: Floats, capability: Floats) -> Floats:
        """Inequality (3.3), for the whole system: lower levels must not compound it."""
        return floats((1 + self.slack) * weight.sum() * capability / capability.sum())
