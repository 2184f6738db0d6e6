"""One load bound for the whole system, whatever the number of levels (COSMOS 3.3, inequality 3.3).

With (1 + α) at every level the bound would compound. Here the limit of a cluster is what its
providers may carry together, less what mapping by whole vertices may leave unused: if no child has
room for a vertex, each lacks less than the heaviest one. So where a cluster keeps to its limit, a
vertex always finds a child with room, on every level down to single queries.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.arrays import Floats, floats
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Balance


class Limits:
    """`heaviest[h - 1]` is the heaviest vertex that coordinators of height h map."""

    def __init__(self, providers: Floats, balance: Balance, heaviest: Sequence[float]) -> None:
        self._providers, self._heaviest = providers, heaviest
        # Few queries, or heavy ones: half of the slack stays, and the bound may be missed by one.
        self._least = (1 + balance.slack / 2) / (1 + balance.slack)

    def of(self, cluster: Cluster) -> float:
        if cluster.is_provider:
            return float(self._providers[cluster.centre])
        spare = self._heaviest[cluster.height - 1]
        packed = sum(self.of(child) - spare for child in cluster.children)
        return max(packed, self._least * float(self._providers[cluster.providers].sum()))

    def of_children(self, cluster: Cluster) -> Floats:
        return floats(self.of(child) for child in cluster.children)
