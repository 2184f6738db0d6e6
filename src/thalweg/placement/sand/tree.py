"""The processing tree of SAND (3.1): what is placed, and what it costs.

Nodes are the sources, which stand at hosts, the operators, and a root that stands for delivery: it
is pinned at the proxy, so that the way of the result is paid for as well (the source's sum leaves
it out). An edge's rate β belongs to the node below it. An operator gives its selectivity times the
*sum* of what it takes: a product, as 3.1 has it, would depend on the unit of rates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints

ROUNDING = 1e-9  # relative: sums of floats differ in their last digits


class TreeError(ValueError):
    """A tree that can't be placed: names the node, what is wrong, and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Nodes in post-order: inputs before what takes them, the root last."""

    name: str
    names: tuple[str, ...]
    parent: Ints  # NONE for the root
    rate_bps: Floats  # of what the node gives; the root gives nothing
    pinned: Ints  # the host of a node that can't be moved, else NONE
    bound_ms: float = inf  # of the longest way from a source to the proxy (3.5)
    inputs: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.names)
        if count < 2 or not len(self.parent) == len(self.rate_bps) == len(self.pinned) == count:
            raise TreeError(f"{self.name}: a tree has a source and a root, and columns of one size")
        if self.parent[-1] != NONE or self.pinned[-1] == NONE:
            raise TreeError(f"{self.name}: the last node is the root, and stands at the proxy")
        if not (self.parent[:-1] > np.arange(count - 1)).all() or (self.parent >= count).any():
            raise TreeError(f"{self.name}: nodes stand in post-order, inputs first")
        if not (np.isfinite(self.rate_bps) & (self.rate_bps >= 0)).all():
            raise TreeError(f"{self.name}: a rate is a number, and not negative")
        if not self.bound_ms >= 0:
            raise TreeError(f"{self.name}: a bound on latency is a number, and not negative")
        below: list[list[int]] = [[] for _ in range(count)]
        for node, above in enumerate(self.parent[:-1].tolist()):
            below[above].append(node)
        object.__setattr__(self, "inputs", tuple(tuple(nodes) for nodes in below))
        for node in self.sources:
            if self.pinned[node] == NONE:
                raise TreeError(
                    f"{self.name}: source {self.names[node]} stands at no host: give its home"
                )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def root(self) -> int:
        return len(self.names) - 1

    @property
    def proxy(self) -> int:
        return int(self.pinned[-1])

    @property
    def sources(self) -> tuple[int, ...]:
        return tuple(node for node, below in enumerate(self.inputs) if not below)

    @property
    def operators(self) -> tuple[int, ...]:
        """What is there to place: neither sources nor the root."""
        return tuple(node for node in range(self.root) if self.inputs[node])

    def cost(self, at: Ints, distance: Floats) -> float:
        """Σ β·d over the edges (1), with the distances of 3.3: the bandwidth that is consumed."""
        rate, ways = self.rate_bps[:-1], distance[at[:-1], at[self.parent[:-1]]]
        ways = np.where(at[:-1] == at[self.parent[:-1]], 0.0, ways)
        with np.errstate(invalid="ignore"):  # nothing over no way is still no way
            return float(np.where(np.isinf(ways), inf, rate * ways).sum())

    def delays_ms(self, at: Ints, latency_ms: Floats) -> Floats:
        """Of each source, how long its way to the proxy takes (3.5)."""
        onward = np.zeros(len(self))
        for node in range(self.root - 1, -1, -1):
            above = int(self.parent[node])
            way = 0.0 if at[node] == at[above] else float(latency_ms[at[node], at[above]])
            onward[node] = onward[above] + way
        return onward[list(self.sources)]

    def delay_ms(self, at: Ints, latency_ms: Floats) -> float:
        return float(self.delays_ms(at, latency_ms).max())
