"""Bandwidth and queueing: what a message waits for on its way.

Store and forward: a message waits for its link to be free, takes size / bandwidth to be sent, and
arrives a delay later; a node serves one message at a time, first come, first served. The caller
asks hop by hop, in order of time, so that first come is first served on each link and node.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from thalweg.sim.networks import latencies
from thalweg.sim.networks.topology import Ints, Topology


@dataclass(frozen=True, slots=True)
class Hop:
    node: int
    arrives_us: int


class Line:
    """One server with a queue of any length, first come, first served, in whole microseconds."""

    __slots__ = ("busy_us", "free_at_us")

    def __init__(self) -> None:
        self.free_at_us = 0
        self.busy_us = 0  # in all: its share of the time is the load

    def serve(self, now_us: int, service_us: int) -> int:
        """When the service of what arrives now ends."""
        if service_us < 0:
            raise ValueError(f"a service takes no negative time ({service_us} µs)")
        self.free_at_us = max(now_us, self.free_at_us) + service_us
        self.busy_us += service_us
        return self.free_at_us


class Links:
    """Messages on the links of a topology, along shortest paths."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.lines: dict[tuple[int, int], Line] = defaultdict(Line)  # per direction
        self._toward: dict[int, Ints] = {}
        self._link: dict[tuple[int, int], int] = {}
        for i, (a, b) in enumerate(topology.ends.tolist()):
            self._link[a, b] = self._link[b, a] = i

    def hop(self, now_us: int, at: int, to: int, size_bytes: int) -> Hop:
        """One link of the way from `at` to `to`: the node it leads to, and the time there."""
        if at == to:
            raise ValueError(f"node {at} needs no link to itself")
        if to not in self._toward:  # links work both ways, so paths from `to` lead there as well
            self._toward[to] = latencies.paths_from(self.topology, to)
        node = int(self._toward[to][at])
        link = self._link[at, node]
        sending_us = -(-size_bytes * 8_000_000 // int(self.topology.bandwidth_bps[link]))
        sent_us = self.lines[at, node].serve(now_us, sending_us)
        return Hop(node, sent_us + int(self.topology.latency_us[link]))


class Nodes:
    """Messages at nodes, each of which takes its own time for a message."""

    def __init__(self, service_us: Ints) -> None:
        if np.any(np.asarray(service_us) < 0):
            slow = int(np.argmin(service_us))
            raise ValueError(f"node {slow} takes {service_us[slow]} µs a message; 0 is the least")
        self.service_us = service_us
        self.lines = [Line() for _ in service_us]

    def done(self, now_us: int, node: int) -> int:
        """When `node` has served a message that arrives now."""
        return self.lines[node].serve(now_us, int(self.service_us[node]))


def expected_wait_us(load: float, service_us: float) -> float:
    """Mean time in the queue of an M/M/1 server (COSMOS 4.2.1); infinite from full load on."""
    if load < 0 or service_us < 0:
        raise ValueError("load and service time can't be negative")
    return load / (1 - load) * service_us if load < 1 else float("inf")
