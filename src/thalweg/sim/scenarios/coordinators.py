"""Coordinator tree: whatever happened, in the end there is one tree of well-sized clusters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.world import World

MOST_HOSTS = 60  # with those that join during the storm
SLACK = 0.05  # of measured distances, by clocks that run fast or slow


class CoordinatorsScenario(Scenario):
    name = "coordinators"
    about = "a tree of clusters of near nodes, each led by its median"
    fewest_nodes = 2
    most_nodes = 16
    storm_us = 25 * SECOND_US
    settle_within_us = 150 * SECOND_US
    stay_us = 10 * SECOND_US
    check_every_us = SECOND_US
    settings = TreeSettings(k=3)

    def network(self) -> Hosts:
        return _network(self.options.seed % 8)

    def build(self, address: Address) -> Stack:
        membership = Membership()
        return Stack([membership, CoordinatorTree(membership, self.settings)])

    def admit(self, world: World, address: Address) -> None:
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, host)

    def broken(self, world: World) -> str | None:
        return misshapen(world)

    def unsettled(self, world: World) -> str | None:
        return imperfect(world, findable(world), self.settings)

    def describe(self, host: Host) -> str:
        place = tree_at(host).place
        led = "; ".join(
            f"level {i}: {', '.join(sorted(c.members))}" for i, c in enumerate(place.led)
        )
        return f"under {place.parent or 'nobody'}" + (f"; leads {led}" if led else "")

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        if verb == "tree" and not words:
            roots = [h.address for h in world.up() if tree_at(h).place.is_root]
            return [line for root in roots for line in _drawn(world, root, "")]
        return super().command(world, verb, words)


@lru_cache
def _network(which: int) -> Hosts:
    topology = transit_stub.generate(transit_stub.small(96, longest_ms=120), which)
    return scattered(topology, MOST_HOSTS, which)


def _drawn(world: World, address: Address, margin: str) -> list[str]:
    """A node and all below it, each cluster indented by a level."""
    tree = tree_at(world.hosts[address])
    lines = [f"{margin}{address}"]
    for level, cluster in reversed(list(enumerate(tree.place.led))):
        running = [m for m in sorted(cluster.others) if world.hosts[m].is_up]
        for member in running:
            place = tree_at(world.hosts[member]).place
            if place.parent == address and place.height == level:  # both agree
                lines += _drawn(world, member, f"{margin}  ")
    return lines


def tree_at(host: Host) -> CoordinatorTree:
    assert host.stack is not None
    found = host.stack["coordinators"]
    assert isinstance(found, CoordinatorTree)
    return found


def misshapen(world: World) -> str | None:
    """What may never be: a leader outside its own cluster, a circle of parents that agree to it."""
    trees = {h.address: tree_at(h) for h in world.up()}
    for address, tree in trees.items():
        for level, cluster in enumerate(tree.place.led):
            if address not in cluster.members:
                return f"{address} leads level {level} and is not in it"
        met, at = [address], agreed_parent(trees, address)
        while at is not None:
            if at in met:
                return f"parents form a circle: {', '.join(met)}"
            met.append(at)
            at = agreed_parent(trees, at)
    return None


def agreed_parent(trees: dict[Address, CoordinatorTree], address: Address) -> Address | None:
    """The parent, if it thinks so too."""
    place = trees[address].place
    parent = trees.get(place.parent) if place.parent is not None else None
    if parent is None or place.height >= parent.place.height:
        return None
    return place.parent if address in parent.place.led[place.height].members else None


def imperfect(world: World, hosts: Sequence[Host], settings: TreeSettings) -> str | None:
    """What is missing to the tree of these hosts that was promised; None once it stands."""
    trees = {h.address: tree_at(h) for h in hosts}
    roots = [a for a, t in trees.items() if t.place.is_root]
    if len(roots) != 1:
        return f"there are {len(roots)} roots: {', '.join(roots)}"
    for address, tree in trees.items():
        if tree.place.parent is not None and agreed_parent(trees, address) is None:
            return f"{address} thinks that {tree.place.parent} is its parent"
        problem = _bad_cluster(world, trees, address, settings)
        if problem is not None:
            return problem
    return None


def _bad_cluster(
    world: World, trees: dict[Address, CoordinatorTree], address: Address, settings: TreeSettings
) -> str | None:
    tree = trees[address]
    for level, cluster in enumerate(tree.place.led):
        for member in cluster.others:
            if member not in trees:
                return f"{address} leads {member}, which does not run, at level {level}"
            its = trees[member].place
            if its.height != level or its.parent != address:
                return f"{address} thinks that it leads {member} at level {level}"
        size, at_the_top = (
            len(cluster.members),
            tree.place.is_root and level + 1 == tree.place.height,
        )
        least = 2 if at_the_top else settings.k
        if not least <= size <= settings.largest:
            return (
                f"{address} leads {size} at level {level}; {least} to {settings.largest} is right"
            )
        members = sorted(cluster.members)
        totals = {m: _total(world, m, members) for m in members}
        if totals[address] > min(totals.values()) * (1 + settings.tolerance + SLACK) + len(members):
            better = min(totals, key=lambda m: (totals[m], m))
            return f"{address} leads level {level}, where {better} is the median"
    return None


def _total(world: World, member: Address, members: list[Address]) -> int:
    latency_us, hosts = world.network.latency_us, world.hosts
    return sum(latency_us(hosts[member].index, hosts[m].index) for m in members)
