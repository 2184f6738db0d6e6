"""Peers of an overlay that place queries by SAND's protocol, and what that takes (section 5).

The overlay is prefix routing (the source's is Tapestry) with tables as they are once quiet; or one
that knows everybody, so that a message is one hop, which is how section 5 counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from thalweg.experiments.sand.scenes import Scene
from thalweg.overlay.prefix.table import PrefixTable
from thalweg.overlay.protocol import Address
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import Part, Scope, id_of
from thalweg.overlay.sand.messages import Feed, Mapped, PlaceQuery
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.query import query_of
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import Ints, ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.tree import Tree
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.world import World

NEVER_US = 10**13  # nothing is said twice: what is counted is the placing, not the keeping
ENOUGH_S = 60


class _Routes:
    """What `Routing` and membership are to the protocol; nobody stops here."""

    def __init__(self, peers: Peers, own: Address, one_hop: bool) -> None:
        self._peers, self._own, self._one_hop = peers, own, one_hop

    def next_hop(self, key: int) -> Address | None:
        if not self._one_hop:
            return self._peers.tables[self._own].next_hop(key)
        owner = min(self._peers.addresses, key=lambda a: distance(key, id_of(a)))
        return None if owner == self._own else owner

    def neighbours(self) -> list[Address]:
        return self._peers.tables[self._own].all()

    def parts(self, scope: Scope | None) -> list[Part]:
        raise NotImplementedError("queries are placed, not spread")

    def covers(self, wide: Scope | None, narrow: Scope) -> bool:
        raise NotImplementedError("queries are placed, not spread")

    def is_down(self, address: Address) -> bool:
        return False


@dataclass(frozen=True)
class Peers:
    network: Hosts
    addresses: tuple[Address, ...]

    @cached_property
    def ways(self) -> Ways:
        latency_ms = self.network.matrix_us / 1_000
        return Ways(latency_ms, latency_ms)

    @cached_property
    def tables(self) -> dict[Address, PrefixTable]:
        found = {}
        for i, own in enumerate(self.addresses):
            table = found[own] = PrefixTable(own)
            for j, other in enumerate(self.addresses):
                if i != j:
                    table.put(other, int(self.network.matrix_us[i, j]))
        return found


def make_peers(count: int, seed: int) -> Peers:
    topology = transit_stub.generate(transit_stub.preset("sand"), seed)
    addresses = tuple(f"h{i:04}" for i in range(count))  # their order is the order of numbers
    return Peers(scattered(topology, count, seed), addresses)


def routes_of(peers: Peers, own: Address) -> _Routes:
    """The overlay as one peer knows it."""
    return _Routes(peers, own, one_hop=False)


def peers_on(scene: Scene) -> Peers:
    """Every host of the scene is a peer."""
    stubs = scene.topology.stubs.tolist()
    return Peers(Hosts(scene.topology, stubs), tuple(f"h{i:04}" for i in range(len(stubs))))


@dataclass(slots=True)
class Placing:
    """One query, placed."""

    at: Ints
    sent: Counter[str] = field(default_factory=Counter)
    zones: int = 0
    took_ms: float = 0.0  # until the last operator or source had its last word

    @property
    def messages(self) -> int:
        return sum(self.sent.values())

    @property
    def measuring(self) -> int:
        return sum(self.sent[kind] for kind in ("Measure", "Probe", "Echo", "Measured"))


def place_by_protocol(
    peers: Peers, tree: Tree, algorithm: str, levels: int, k: int, *, one_hop: bool
) -> Placing:
    found = _placed(peers, [tree], algorithm, levels, k, one_hop=one_hop)
    return Placing(ints(found.at[0]), found.sent, found.zones, found.took_ms)


def place_all_by_protocol(
    peers: Peers, trees: Sequence[Tree], algorithm: str, levels: int, k: int
) -> list[Ints]:
    """Many queries at the same time; nobody's placement depends on another's."""
    return _placed(peers, trees, algorithm, levels, k, one_hop=False).at


@dataclass(slots=True)
class _Placed:
    at: list[Ints]
    sent: Counter[str]
    zones: int
    took_ms: float


def _placed(
    peers: Peers, trees: Sequence[Tree], algorithm: str, levels: int, k: int, *, one_hop: bool
) -> _Placed:
    settings = SandSettings(NEVER_US, 2 * NEVER_US, ENOUGH_S * SECOND_US, NEVER_US)

    def build(address: Address) -> Stack:
        routes = _Routes(peers, address, one_hop)
        return Stack([Sand(routes, routes, settings)])

    last_us = 0

    def delivered(host: Host, protocol: str, value: object) -> None:
        nonlocal last_us
        if isinstance(value, Mapped | Feed):
            last_us = world.now_us

    world = World(build, seed=1, network=peers.network, on_deliver=delivered)
    for address in peers.addresses:
        world.start(address)
    for number, tree in enumerate(trees):
        named = replace(tree, name=f"{number}")
        query = query_of(named, peers.addresses, algorithm, levels, k)
        world.call(query.proxy, "sand", PlaceQuery(query))
    world.run_for(ENOUGH_S * SECOND_US)
    at = [np.asarray(tree.pinned).copy() for tree in trees]
    zones = 0
    for number, host in enumerate(world.up()):
        assert host.stack is not None
        sand = host.stack["sand"]
        assert isinstance(sand, Sand)
        zones += len(sand.coordinating.duties)
        for name, node in sand.hosting.running:
            at[int(name)][node] = number
    if any((places < 0).any() for places in at):
        raise RuntimeError(f"a tree was not placed within {ENOUGH_S} s by {algorithm}")
    sent = Counter({kind: count for (_, kind), count in world.sent.items()})
    return _Placed([ints(places) for places in at], sent, zones, last_us / 1_000)
