"""Hosts on a topology, as the simulator's network: who is where, and when messages arrive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.sim.networks import latencies
from thalweg.sim.networks.queueing import Links, Nodes
from thalweg.sim.networks.topology import BadTopology, Ints, Topology


class Hosts:
    """Host i stands at node `places[i]`; messages take shortest paths.

    With `queues`, links have bandwidth, and a host takes `service_us` for each message it receives.
    Room on all links of a path is then taken at the moment of sending. So on a link that paths of
    different lengths share, the first to be sent is the first served, rather than the first to
    come: sums of bytes, loads and bottlenecks are right, and a wait may be off by as much as the
    ways to the link differ.
    """

    def __init__(
        self,
        topology: Topology,
        places: Sequence[int],
        *,
        queues: bool = False,
        service_us: int = 0,
    ) -> None:
        if len(set(places)) < len(places):
            raise BadTopology(f"{topology.name}: two hosts stand at one node")
        self.places = tuple(int(p) for p in places)
        self.matrix_us: Ints = latencies.between(topology, np.asarray(places, dtype=np.int32))
        # Reading an entry through a view costs a fraction of numpy's own indexing, and no memory.
        self._rows = [memoryview(row) for row in self.matrix_us]  # type: ignore[arg-type]
        self.links = Links(topology) if queues else None
        self.service = Nodes(np.full(len(self.places), service_us, dtype=np.int32))

    @property
    def has_queues(self) -> bool:
        return self.links is not None

    def latency_us(self, source: int, target: int) -> int:
        return self._rows[source][target]

    def arrival_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        if self.links is None:
            return now_us + self._rows[source][target]
        at, to = self.places[source], self.places[target]
        while at != to:
            hop = self.links.hop(now_us, at, to, size_bytes)
            at, now_us = hop.node, hop.arrives_us
        return self.service.done(now_us, target)


def scattered(
    topology: Topology, count: int, seed: int, *, queues: bool = False, service_us: int = 0
) -> Hosts:
    """Hosts at random stub nodes, no two at one."""
    stubs = topology.stubs
    if count > len(stubs):
        raise BadTopology(f"{topology.name}: {count} hosts don't fit on {len(stubs)} stub nodes")
    chosen = np.random.default_rng([seed, count]).permutation(stubs)[:count]
    return Hosts(topology, chosen.tolist(), queues=queues, service_us=service_us)
