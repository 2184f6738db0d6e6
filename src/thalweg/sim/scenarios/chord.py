"""Chord: one ring of the live through losses of fewer than r neighbours; parted rings merge."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.overlay.chord.messages import Create, Found, Lookup, NotFound
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.membership import Settings as MembershipSettings
from thalweg.overlay.protocol import Address
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import IDS, id_of
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.membership import open_accusation, stays_connected
from thalweg.sim.world import World

# Under these a live node can be taken for dead by many at once, and rings may part.
PARTING = {"partition", "one-way partition", "clog", "pause", "slow"}
SETTINGS = Settings(successors=3, fix_finger_every_us=3 * SECOND_US)


class ChordScenario(Scenario):
    name = "chord"
    about = "one ring of the live, merged again after partitions; lookups end at the owner"
    fewest_nodes = 5  # r + 2: the base that the corrected rules need, and one to lose
    most_nodes = 12
    warm_up_us = 7 * SECOND_US
    storm_us = 15 * SECOND_US
    settle_within_us = 60 * SECOND_US
    stay_us = 3 * SECOND_US
    act_every_us = SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.never_parts = PARTING.isdisjoint(options.present)
        self.base_is_there = False
        self.lookups = 0
        self.open: dict[int, tuple[Address, int]] = {}  # number -> who asks, in which life
        self.found: dict[int, Address] = {}
        self.expected: dict[int, Address] = {}  # what the lookups after the storm must find

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        """Half of the seeds keep the ring whole, so that its invariant can be demanded."""
        return tuple(f for f in FAULTS if f not in PARTING) if seed % 2 else FAULTS

    def build(self, address: Address) -> Stack:
        # A quarter of the networks outgrows what a node remembers, as large ones do.
        few = self.options.seed % 4 == 2
        membership = Membership(MembershipSettings(capacity=6) if few else None)
        return Stack([membership, Chord(membership, SETTINGS)])

    def admit(self, world: World, address: Address) -> None:
        if address == "n1" and world.hosts[address].lives == 1:
            world.call(address, "chord", Create())
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    def act(self, world: World) -> None:
        self.look_up(world, self.generator.choice(world.up()), self.generator.bits())

    def look_up(self, world: World, host: Host, key: int) -> None:
        self.lookups += 1
        self.open[self.lookups] = (host.address, host.lives)
        world.call(host.address, "chord", Lookup(key, self.lookups))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Found | NotFound):
            assert isinstance(value.tag, int)
            del self.open[value.tag]  # a second answer has nothing to delete, and fails
            if isinstance(value, Found):
                self.found[value.tag] = value.owners[0]

    def can_spare(self, world: World, host: Host) -> bool:
        """Whether everybody keeps a successor that is in the ring, and the base stays."""
        rest = [h for h in members(world) if h is not host]
        if len(rest) < SETTINGS.successors + 1:
            return False
        there = {h.address for h in rest}
        followed = all(there.intersection(chord_at(h).table.successors) for h in rest)
        return followed and stays_connected(world, host)

    def broken(self, world: World) -> str | None:
        for host in members(world):
            if problem := _local_problem(host):
                return problem
        problem = ring_problem(members(world))
        complete = len(members(world)) == self.options.nodes
        self.base_is_there = self.base_is_there or (complete and problem is None)
        return problem if self.never_parts and self.base_is_there else None

    def unsettled(self, world: World) -> str | None:
        if problem := tables_unsettled(world) or open_accusation(world):
            self.expected.clear()
            return problem
        return self._last_lookups(world)

    def _last_lookups(self, world: World) -> str | None:
        """Once the ring is right and quiet: everybody looks for something, and finds its owner."""
        if not self.expected:
            for host in members(world):
                key = self.generator.bits()
                self.expected[self.lookups + 1] = owner_of(key, members(world))
                self.look_up(world, host, key)
        for number, (address, life) in self.open.items():
            host = world.hosts[address]
            if host.is_up and host.lives == life:
                return f"lookup {number} at {address} has no answer"
        for number, owner in self.expected.items():
            if self.found.get(number) != owner:
                return f"lookup {number} found {self.found.get(number)}, the owner is {owner}"
        return None

    def describe(self, host: Host) -> str:
        chord = chord_at(host)
        if not chord.joined:
            return "not in the ring"
        table = chord.table
        after = ", ".join(table.successors) or "itself"
        return f"{table.own_id >> 48:04x} before {after}; after {table.predecessor or 'nobody'}"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "lookup", [address, name]:
                self.look_up(world, world.hosts[address], id_of(name))
                return []
            case "ring", []:
                ring = sorted(members(world), key=lambda h: id_of(h.address))
                return [" ".join(h.address for h in ring)]
        return super().command(world, verb, words)


def chord_at(host: Host) -> Chord:
    assert host.stack is not None
    found = host.stack["chord"]
    assert isinstance(found, Chord)
    return found


def members(world: World) -> list[Host]:
    """Those that run and are in the ring."""
    return [h for h in world.up() if chord_at(h).joined]


def owner_of(key: int, hosts: Sequence[Host]) -> Address:
    return min((h.address for h in hosts), key=lambda a: distance(key, id_of(a)))


def _local_problem(host: Host) -> str | None:
    table = chord_at(host).table
    positions = [table.position(a) for a in table.successors]
    if positions != sorted(set(positions)) or IDS in positions:
        return f"{host.address} has successors out of order: {', '.join(table.successors)}"
    return None


def ring_problem(hosts: Sequence[Host]) -> str | None:
    """One ring, in order, into which everybody leads: Zave's invariant, seen from outside."""
    there = {h.address for h in hosts}
    after = {
        h.address: next((a for a in chord_at(h).table.successors if a in there), h.address)
        for h in hosts
    }
    for address, following in after.items():
        if address == following and len(hosts) > 1:
            return f"{address} has no live successor"
    rings = {_cycle_from(start, after) for start in after}
    if len(rings) > 1:
        return "more than one ring: " + " and ".join(" → ".join(r) for r in sorted(rings))
    for ring in rings:
        ids = [id_of(a) for a in ring]
        round_trip = sum(distance(a, b) or IDS for a, b in zip(ids, ids[1:] + ids[:1], strict=True))
        if round_trip != IDS:
            return f"a ring out of order: {' → '.join(ring)}"
    return None


def _cycle_from(start: Address, after: dict[Address, Address]) -> tuple[Address, ...]:
    """The cycle that following successors ends in, from its least member on."""
    seen: dict[Address, None] = {}
    here = start
    while here not in seen:
        seen[here] = None
        here = after[here]
    path = list(seen)
    cycle = path[path.index(here) :]
    least = cycle.index(min(cycle))
    return tuple(cycle[least:] + cycle[:least])


def tables_unsettled(world: World) -> str | None:
    """Everybody is in the ring, and has exactly the next r after it and the one before it."""
    hosts = world.up()
    if outside := [h.address for h in hosts if not chord_at(h).joined]:
        return f"{', '.join(outside)} not in the ring"
    ring = sorted((h.address for h in hosts), key=id_of)
    for host in hosts:
        at = ring.index(host.address)
        order = ring[at + 1 :] + ring[:at]
        table = chord_at(host).table
        if list(table.successors) != order[: SETTINGS.successors]:
            return f"{host.address} is followed by {order[:3]}, and thinks by {table.successors}"
        if order and table.predecessor != order[-1]:
            return f"{host.address} comes after {order[-1]}, and thinks after {table.predecessor}"
    return None
