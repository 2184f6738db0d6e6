"""Queries that are too much where they are go elsewhere, through the coordinator tree.

Where vertices are coarse and clusters small, a cluster may get more than its providers can carry
within the bound. Then as few queries as possible leave, and are routed like new ones.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import Ints, ints
from thalweg.placement.cosmos.cost import loads
from thalweg.placement.cosmos.mapping import ROUNDING
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.routing import Router
from thalweg.placement.cosmos.system import System


def within_bound(system: System, provider: Ints, balance: Balance) -> Ints:
    """The same mapping, but for queries of providers over their limits."""
    limits = system.limits(balance)
    load = loads(system.queries.weight, provider, len(limits))
    crowded = np.flatnonzero(load > limits * (1 + ROUNDING))
    if not len(crowded):
        return provider
    leaves = np.zeros(len(provider), bool)
    for full in crowded.tolist():
        there = np.flatnonzero(provider == full)
        heavy = there[np.argsort(-system.queries.weight[there], kind="stable")]
        excess = load[full] - limits[full]
        gone = np.cumsum(system.queries.weight[heavy])
        leaves[heavy[: int(np.searchsorted(gone, excess)) + 1]] = True
    rest = System(system.network, system.root, system.substreams, system.queries.chosen(~leaves))
    moving = system.queries.chosen(leaves)
    router = Router(rest, ints(provider[~leaves]), balance, announced=float(moving.weight.sum()))
    found = np.array(provider)
    found[leaves] = router.route(moving)
    return ints(found)
