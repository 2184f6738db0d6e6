"""The network and the nodes of COSMOS 4.4.1, and its synthetic data.

1,500 nodes transit-stub, one of them the source, 256 others service providers, 20 ms apart on
average. Times are uniform, with a mean and a least value; the source always takes the least. A load
multiplies the mean and leaves the least.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.model import Nodes
from thalweg.sim.networks import latencies, transit_stub

US = 1e6
FILTER_S, FILTER_LEAST_S = 5e-3, 1e-3
SEND_S, SEND_LEAST_S = 1e-3, 0.125e-3
RATE, RATE_LEAST = 1.0, 0.5  # messages a second


@lru_cache(maxsize=8)
def delays_s(seed: int, count: int) -> Floats:
    """Between the source (0) and `count` providers; all but small tests use the source's size."""
    what = transit_stub.COSMOS_1500 if count >= 64 else transit_stub.small(200, longest_ms=50)
    topology = transit_stub.generate(what, seed)
    places = np.random.default_rng([seed, 51]).permutation(topology.stubs)[: count + 1]
    found: Floats = latencies.between(topology, places) / US
    found.flags.writeable = False
    return found


def drawn_nodes(seed: int, count: int, load: float) -> Nodes:
    """The same nodes are the slow ones at every load."""
    rng = np.random.default_rng([seed, 52])
    where = rng.random((2, count + 1))
    filter_s = FILTER_LEAST_S + where[0] * 2 * (load * FILTER_S - FILTER_LEAST_S)
    send_s = SEND_LEAST_S + where[1] * 2 * (load * SEND_S - SEND_LEAST_S)
    filter_s[0], send_s[0] = FILTER_LEAST_S, SEND_LEAST_S
    return Nodes(delays_s(seed, count), filter_s, send_s)


def drawn_rates(seed: int, count: int, load: float = 1.0) -> Floats:
    """Of one object, for each provider; the source has the highest of them."""
    rng = np.random.default_rng([seed, 53])
    rates = rng.uniform(RATE_LEAST, 2 * RATE - RATE_LEAST, count + 1) * load
    rates[0] = rates[1:].max()
    found: Floats = rates
    return found
