"""Topologies, and trees on them whose sources stand as a configuration says (SAND 6.1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape, draw_tree
from thalweg.sim.networks import latencies, transit_stub
from thalweg.sim.networks.scatter import Configuration, NoSuchPlaces, Places, place
from thalweg.sim.networks.topology import Topology

_TRIES = 3  # seeds for places before a tree counts as impossible to place so


@dataclass(frozen=True, eq=False)
class Scene:
    """Hosts are the stub nodes of a topology; transit nodes only forward."""

    seed: int
    topology: Topology
    latency_us: np.ndarray
    ways: Ways

    @property
    def latency_ms(self) -> Floats:
        return self.ways.latency_ms

    @property
    def sites(self) -> Ints:
        """Of each host, its stub domain."""
        return self.topology.domain[self.topology.stubs]

    def trees(
        self, configuration: Configuration, shape: Shape, count: int, *, streams_per_host: int = 1
    ) -> Iterator[Tree]:
        """The same trees for the same seed, whatever is asked before.

        Trees for whose sources there are no such places are left out; without any left, it ends.
        """
        none = True
        for number in range(count):
            rng = np.random.default_rng([self.seed, number])
            depth = int(rng.choice(shape.depths))
            hosts = max(2, shape.fanout**depth // streams_per_host)
            places = self._places(configuration, hosts, number)
            if places is not None:
                none = False
                homes = rng.permutation(np.resize(places.sources, shape.fanout**depth))
                yield draw_tree(shape, depth, places.proxy, homes.tolist(), rng)
        if none:
            raise NoSuchPlaces(
                f"{self.topology.name}: there are no {configuration.name} places for {count} trees "
                "with that many sources; take smaller trees, or more nodes"
            )

    def _places(self, configuration: Configuration, sources: int, number: int) -> Places | None:
        hosts = np.arange(len(self.latency_us), dtype=np.int32)
        for attempt in range(_TRIES):
            seed = 1_000_000 * attempt + 1_000 * self.seed + number
            with suppress(NoSuchPlaces):
                return place(self.latency_us, hosts, configuration, sources=sources, seed=seed)
        return None


def make_scene(seed: int, nodes: int) -> Scene:
    what = transit_stub.SAND
    if nodes != what.nodes:
        what = transit_stub.small(nodes, longest_ms=what.longest_ms or 500.0)
    topology = transit_stub.generate(what, seed)
    latency_us = latencies.between(topology, topology.stubs)
    latency_ms = latency_us / 1000
    return Scene(seed, topology, latency_us, Ways(latency_ms, latency_ms))


def bounded(tree: Tree, multiple: float, latency_ms: Floats) -> Tree:
    """With a bound that is a multiple of the tree's longest direct delay."""
    return replace(tree, bound_ms=multiple * direct_ms(tree, latency_ms))
