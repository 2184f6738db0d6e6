"""What a mapping is worth: the weighted edge cut, what the network carries, and how even it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.experiments.cosmos.setting import Setting
from thalweg.placement.arrays import Ints, ints
from thalweg.placement.cosmos.cost import imbalance, loads, spread, weighted_edge_cut
from thalweg.placement.cosmos.delivery import delivered_cost, results_cost
from thalweg.placement.cosmos.system import System


@dataclass(frozen=True)
class Verdict:
    cut: float
    delivered: float  # substreams, each once over each link of its tree
    results: float
    busiest: float  # of its share
    spread: float  # of loads: standard deviation over mean

    @property
    def row(self) -> dict[str, float]:
        return {
            "WEC 10⁹": round(self.cut / 1e9, 2),
            "delivered 10⁶": round(self.delivered / 1e6, 2),
            "results 10⁶": round(self.results / 1e6, 2),
            "busiest": round(self.busiest, 4),
            "load spread": round(self.spread, 4),
        }


def judge(setting: Setting, system: System, mapping: Ints) -> Verdict:
    network = setting.network
    load = loads(system.queries.weight, mapping, len(network))
    return Verdict(
        weighted_edge_cut(network, system.substreams, system.queries, mapping).total,
        delivered_cost(setting.trees, system.substreams, system.queries, mapping),
        results_cost(network.latency_ms, system.queries, mapping),
        imbalance(load, network.capability),
        spread(load, network.capability),
    )


def closed(naive: float, ours: float, best: float) -> float:
    """Which part of the distance between naive and the best known was closed."""
    return (naive - ours) / (naive - best) if naive > best else 1.0


def by_groups(system: System, group: Ints, slack: float) -> Ints:
    """What one could do who knows the users' groups: region after region, remote ones left out.

    Providers in the order of the coordinator tree, but for as many of the most remote as the slack
    allows to leave idle, are filled with one group after the other.
    """
    remote = np.argsort(-system.network.latency_ms.sum(axis=1))
    idle = remote[: int(len(remote) * slack / (1 + slack)) - 1]
    used = system.root.providers[~np.isin(system.root.providers, idle)]
    order = np.argsort(group, kind="stable")
    upto = np.cumsum(system.queries.weight[order])
    place = np.minimum((upto / upto[-1] * len(used)).astype(int), len(used) - 1)
    found = np.zeros(len(group), np.int32)
    found[order] = used[place]
    return ints(found)
