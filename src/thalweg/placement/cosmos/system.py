"""Everything that is to be distributed, over what, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.placement.arrays import Floats
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Balance, Network, Substreams, Vertices


@dataclass(frozen=True, slots=True)
class Settings:
    most_vertices: int = 300  # v_max, of which the source gives no value
    balance: Balance = field(default_factory=Balance)
    exchange: bool = True  # a last look at every query, beyond the borders of clusters
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class System:
    network: Network
    root: Cluster
    substreams: Substreams
    queries: Vertices

    def __post_init__(self) -> None:
        if sorted(self.root.providers.tolist()) != list(range(len(self.network))):
            raise ValueError("the coordinator tree does not have every provider just once")
        if self.queries.interests.shape[1] != len(self.substreams):
            raise ValueError("queries want substreams that are not there")
        if self.queries.results.shape[1] != len(self.network):
            raise ValueError("results go to proxies that are not there")

    def limits(self, balance: Balance) -> Floats:
        return balance.limits(self.queries.weight, self.network.capability)
