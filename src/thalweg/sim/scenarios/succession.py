"""Succession: whoever stops, each reader of a fragment reads every instant once, and goes on.

Never, not even in the storm: a value that is not the sum of its window, and so a row that is lost
or counted twice; a home that has dropped what a reader needs to have its fragment computed anew. In
the end every reader whose streams' homes run has come to the present.
"""

from __future__ import annotations

from collections import Counter

from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.overlay.succession import Follow, Need, Settings, Succession, TakeOver
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.scenarios.succession_engine import SuccessionEngine
from thalweg.sim.world import World

INSTANT_US = 250_000  # between two rows of a stream
BEHIND = 16  # instants that a reader may be behind in the end


class SuccessionScenario(Scenario):
    name = "succession"
    about = "a fragment's node is gone: its reader has it computed elsewhere, from where it is"
    fewest_nodes = 3
    most_nodes = 8
    warm_up_us = 10 * SECOND_US
    storm_us = 40 * SECOND_US
    settle_within_us = 120 * SECOND_US
    suite_seeds = 15
    settings = Settings(silent_for_us=2 * SECOND_US, again_us=SECOND_US // 2)

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.world: World | None = None
        self.hosts = [f"n{i}" for i in range(1, max(options.nodes, 3) + 1)]
        self.follows: dict[Address, list[Follow]] = {}
        self.steps: Counter[str] = Counter()
        self.wiped: dict[Address, int] = {}  # how often a host has lost its disk
        self.gap: str | None = None
        for reader in self.hosts:
            for number in range(generator.between(1, 2)):
                homes = generator.sample(self.hosts, generator.between(1, 2))
                needs = tuple(Need(home, f"s@{home}") for home in homes)
                at = generator.choice(self.hosts)
                follow = Follow(f"f{number}@{reader}", at, needs, generator.between(0, 12))
                self.follows.setdefault(reader, []).append(follow)

    def build(self, address: Address) -> Stack:
        membership = Membership()
        succession = self.protocol(membership)
        return Stack([membership, succession, SuccessionEngine(self, address)])

    def protocol(self, membership: Membership) -> Succession:
        return Succession(membership, self.settings)

    def admit(self, world: World, address: Address) -> None:
        self.world = world
        self.wiped[address] = self.wiped.get(address, -1) + 1
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, without=host)

    # --- what the engines see ---

    @property
    def instant(self) -> int:
        return 0 if self.world is None else self.world.now_us // INSTANT_US

    def wants(self, address: Address) -> list[Follow]:
        return self.follows.get(address, [])

    def places(self, address: Address) -> list[Address]:
        assert self.world is not None
        return [h.address for h in self.world.up()] or [address]

    def wrong(self, why: str) -> None:
        self.gap = why

    def lacks(self, home: Address, stream: str, publication: str, since: int) -> None:
        """A home does not have what is asked of it. A publication that nobody reads any more may
        ask for anything."""
        assert self.world is not None
        if self.wiped[home] or self.gap is not None:
            return
        for host in self.world.up():
            for wanted in engine_at(host).disk.wanted.values():
                if f"{wanted.follow.key}.{wanted.number}" == publication and wanted.is_held:
                    why = f"{home} has dropped {stream} from {since} on, which {publication} needs"
                    self.gap = why

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, TakeOver | Follow):
            self.steps["told" if isinstance(value, TakeOver) else "taken over"] += 1

    # --- what was promised ---

    def broken(self, world: World) -> str | None:
        return self.gap

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        up = {h.address for h in hosts}
        for host in hosts:
            for key, wanted in engine_at(host).disk.wanted.items():
                homes = {n.home for n in wanted.follow.needs}
                if not homes <= up or any(self.wiped[h] for h in homes):
                    continue
                if wanted.place < self.instant - BEHIND:
                    at = wanted.follow.publisher
                    return f"{key} has come to {wanted.place} of {self.instant}, computed at {at}"
        return None

    def describe(self, host: Host) -> str:
        wanted = engine_at(host).disk.wanted.values()
        return "; ".join(f"{w.follow.key} of {w.follow.publisher} to {w.place}" for w in wanted)


def engine_at(host: Host) -> SuccessionEngine:
    assert host.stack is not None
    found = host.stack["engine"]
    assert isinstance(found, SuccessionEngine)
    return found
