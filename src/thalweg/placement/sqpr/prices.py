"""What a unit of each resource costs a planner, host by host.

A resource's price has three parts: its weight in the objective (III.3), a share of the balance
weight that grows with the host's load, and a charge on what is nearly full, which rises
exponentially. The last keeps scarce hosts free for queries that can go nowhere else, as in
competitive online routing; it is what lets queries be planned one after another without regret.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.cost import Weights, yardsticks
from thalweg.placement.ledger import Ledger

STEEPNESS = 8.0  # at half load the charge is e^(−4), 2 % of the charge at full load
SCARCITY = 1.0  # the charge at full load, in units of a weight of 1


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    cpu: Floats
    out_bps: Floats
    in_bps: Floats
    link_bps: Floats | None


def prices(ledger: Ledger, weights: Weights) -> Prices:
    """Per unit of a resource, so that all of a host's capacity costs about its weight."""
    hosts = ledger.problem.hosts
    network = weights.network / 2  # a send is paid at both ends
    cpu, bps = (total / len(hosts) for total in yardsticks(ledger.problem))
    return Prices(
        _price(ledger.cpu_left, hosts.cpu, weights.cpu, weights.balance, cpu),
        _price(ledger.out_left, hosts.out_bps, network, 0.0, bps),
        _price(ledger.in_left, hosts.in_bps, network, 0.0, bps),
        None
        if ledger.link_left is None or hosts.link_bps is None
        else _price(ledger.link_left, hosts.link_bps, 0.0, 0.0, bps),
    )


def _price(
    left: Floats, capacity: Floats, weight: float, balance: float, unlimited: float
) -> Floats:
    """`unlimited` is what the weight is for where there is no capacity to be a part of."""
    limited = np.isfinite(capacity) & (capacity > 0)
    whole = np.where(limited, capacity, 1.0)
    load = np.where(limited, 1.0 - left / whole, 0.0)
    charge = weight + balance * load + SCARCITY * np.exp(STEEPNESS * (load - 1.0))
    found: Floats = np.where(limited, charge / whole, weight / unlimited if unlimited > 0 else 0.0)
    return found
