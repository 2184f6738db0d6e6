"""Membership: whatever happened, in the end everybody knows exactly those that run."""

from __future__ import annotations

import msgspec

from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Down, Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import LEFT, SUSPECT
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.world import World

# Under these alone nobody who runs is ever taken for dead.
HARMLESS = {"duplication", "reordering", "join", "leave", "skew"}


class MembershipScenario(Scenario):
    name = "membership"
    about = "who is in the network, and who has stopped"
    fewest_nodes = 2
    most_nodes = 14
    settle_within_us = 45 * SECOND_US
    stay_us = 4 * SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.wrongly_down: list[tuple[Address, Address]] = []  # (who says so, of whom)

    def build(self, address: Address) -> Stack:
        return Stack([Membership()])

    def admit(self, world: World, address: Address) -> None:
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Down) and HARMLESS.issuperset(self.options.present):
            self.wrongly_down.append((host.address, value.address))

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and stays_connected(world, host)

    def broken(self, world: World) -> str | None:
        for observer, accused in self.wrongly_down:
            if not world.hosts[accused].gone:
                return f"{observer} took {accused} for dead, though nothing is lost or stopped"
        self.wrongly_down.clear()
        for host in world.up():
            for word in members_at(host).view.words.values():
                if word.address not in world.hosts:
                    return f"{host.address} knows {word.address}, who never was"
                if word.status == LEFT and not world.hosts[word.address].gone:
                    return f"{host.address} thinks that {word.address} has left, and it has not"
        return None

    def unsettled(self, world: World) -> str | None:
        running = {h.address for h in world.up()}
        for host in world.up():
            believed = set(members_at(host).up())
            if missing := sorted(running - believed - {host.address}):
                return f"{host.address} does not know that {', '.join(missing)} run"
            if ghosts := sorted(believed - running):
                return f"{host.address} thinks that {', '.join(ghosts)} run"
        return None

    def describe(self, host: Host) -> str:
        names = ("up", "suspect", "down", "left")
        words = sorted(members_at(host).view.words.values(), key=lambda w: w.address)
        return "; ".join(f"{w.address} {names[w.status]}@{w.incarnation}" for w in words)


def members_at(host: Host) -> Membership:
    assert host.stack is not None
    found = host.stack["membership"]
    assert isinstance(found, Membership)
    return found


def open_accusation(world: World) -> str | None:
    """Somebody who runs and is suspected: it may yet be taken for dead for a moment, and dropped.

    So what is asked of the protocols above may be answered wrongly, though all their tables are
    right when one looks: the network is not quiet yet.
    """
    for host in world.up():
        for word in members_at(host).view.words.values():
            if word.status == SUSPECT and world.hosts[word.address].is_up:
                return f"{host.address} suspects {word.address}, which runs"
    return None


def remembered_by(host: Host) -> set[Address]:
    """Whom it would ask: by its view, or, while it is down, by its disk."""
    if host.is_up:
        return set(members_at(host).view.remembered())
    members = host.disk.get("membership", {}).get("members")
    return set() if members is None else set(msgspec.msgpack.decode(members, type=list[Address]))


def stays_connected(world: World, without: Host) -> bool:
    """Whether all still find each other without this host, through what they remember.

    A node that nobody has heard of yet, and whose every contact stops for good, is beyond any
    protocol's help. Those that are down count too: they may come back.
    """
    rest = {h.address: remembered_by(h) for h in world.hosts.values() if h is not without}
    running = {h.address for h in world.up() if h is not without}
    found: set[Address] = set()
    todo = sorted(running)[:1]
    while todo:
        here = todo.pop()
        found.add(here)
        todo += [a for a in running - found if a in rest[here] or here in rest[a]]
    asleep = [a for a in rest if a not in running and rest[a] and not world.hosts[a].gone]
    return found == running and all(
        rest[a] & running or any(a in rest[b] for b in running) for a in asleep
    )
