"""Prefix routing: in the end every key has one owner, whoever asks."""

from __future__ import annotations

from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.prefix.table import ROWS
from thalweg.overlay.protocol import Address
from thalweg.overlay.routing import id_of
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.world import World

KEYS = tuple(id_of(f"key {i}") for i in range(8))


class PrefixScenario(Scenario):
    name = "prefix"
    about = "tables by digit, and surrogate routing to one owner of each key"
    fewest_nodes = 2
    most_nodes = 16
    storm_us = 15 * SECOND_US
    settle_within_us = 90 * SECOND_US
    check_every_us = SECOND_US

    def build(self, address: Address) -> Stack:
        membership = Membership()
        return Stack([membership, Prefix(membership)])

    def admit(self, world: World, address: Address) -> None:
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, host)

    def broken(self, world: World) -> str | None:
        for host in world.up():
            table = prefix_at(host).table
            for row in range(table.rows):
                for address in table.row(row):
                    if table.slot_of(address)[0] != row:
                        return f"{host.address} holds {address} in row {row}, where it does not fit"
        return None

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        return incomplete(hosts) or disagreeing(world, hosts)


def prefix_at(host: Host) -> Prefix:
    assert host.stack is not None
    found = host.stack["prefix"]
    assert isinstance(found, Prefix)
    return found


def incomplete(hosts: list[Host]) -> str | None:
    """A slot that is empty though somebody fits it, or one who is there and should not be."""
    up = {h.address for h in hosts}
    for host in hosts:
        table = prefix_at(host).table
        if ghosts := [a for a in table.all() if a not in up]:
            return f"{host.address} still holds {ghosts[0]}"
        for other in hosts:
            if other is not host and table.nearest(table.slot_of(other.address)) is None:
                return f"{host.address} has nobody where {other.address} fits"
    return None


def disagreeing(world: World, hosts: list[Host]) -> str | None:
    """A key for which routes end at different nodes."""
    for key in KEYS:
        owners = {owner_from(world, host.address, key) for host in hosts}
        if len(owners) != 1:
            return f"key {key:016x} belongs to {', '.join(sorted(owners))}"
    return None


def owner_from(world: World, start: Address, key: int) -> Address:
    at = start
    for _ in range(ROWS + 1):
        following = prefix_at(world.hosts[at]).next_hop(key)
        if following is None:
            return at
        at = following
    return f"nobody (from {start}, in circles)"
