"""Handover: fragments go from node to node with their state, whoever stops.

Never, not even in the storm: a value that is not the sum of all rows so far, and so a row that is
lost or counted twice. In the end every reader whose fragment's owners have their disks has come to
the present, and no move is open. Counted are moves that came to their end on each side.
"""

from __future__ import annotations

from collections import Counter

from thalweg.adapt.handover import Giving, Handover, Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import findable
from thalweg.sim.scenarios.handover_engine import HandoverEngine
from thalweg.sim.world import World

INSTANT_US = 250_000  # between two rows of a stream
BEHIND = 16  # instants that a reader may be behind in the end


class HandoverScenario(Scenario):
    name = "handover"
    about = "fragments go from node to node with their state, and every instant is said once"
    fewest_nodes = 3
    most_nodes = 6
    warm_up_us = 5 * SECOND_US
    storm_us = 40 * SECOND_US
    settle_within_us = 120 * SECOND_US
    suite_seeds = 20
    settings = Settings(silent_for_us=3 * SECOND_US, again_us=SECOND_US // 2)

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.world: World | None = None
        self.hosts = [f"n{i}" for i in range(1, max(options.nodes, 3) + 1)]
        self.steps: Counter[str] = Counter()
        self.wiped: dict[Address, int] = {}  # how often a host has lost its disk
        self.gap: str | None = None
        self.calm_from_us = self.warm_up_us + self.storm_us
        self._readers = {f"f{i}": generator.choice(self.hosts) for i in range(len(self.hosts))}
        self._owners = {f: generator.choice(self.hosts) for f in self._readers}

    def build(self, address: Address) -> Stack:
        handover = self.protocol()
        return Stack([Membership(), handover, HandoverEngine(self, address, handover)])

    def protocol(self) -> Handover:
        return Handover(self.settings)

    def admit(self, world: World, address: Address) -> None:
        self.world = world
        self.wiped[address] = self.wiped.get(address, -1) + 1
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))

    # --- what the engines see ---

    @property
    def instant(self) -> int:
        return 0 if self.world is None else self.world.now_us // INSTANT_US

    @property
    def is_calm(self) -> bool:
        return self.world is not None and self.world.now_us > self.calm_from_us

    def owns(self, address: Address) -> list[str]:
        if address in self.wiped:  # its disk was lost
            return []
        return [f for f, at in self._owners.items() if at == address]

    def reads(self, address: Address) -> list[tuple[str, Address]]:
        mine = (f for f, at in self._readers.items() if at == address)
        return [] if address in self.wiped else [(f, self._owners[f]) for f in mine]

    def places(self, address: Address) -> list[Address]:
        assert self.world is not None
        return [h.address for h in self.world.up()] or [address]

    def wrong(self, why: str) -> None:
        self.gap = why

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if protocol == "engine" and isinstance(value, Giving):
            self.steps[f"{value.way}: {value.step}"] += 1

    # --- what was promised ---

    def broken(self, world: World) -> str | None:
        return self.gap

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        up = {h.address for h in hosts}
        for host in hosts:
            for fragment, reading in engine_at(host).disk.reading.items():
                if not set(reading.owners) <= up or any(self.wiped[h] for h in reading.owners):
                    continue
                if reading.place < self.instant - BEHIND:
                    return f"{fragment} has come to {reading.place} of {self.instant}"
        for host in hosts:
            for giving in handover_at(host).giving().values():
                if giving.to in up and not giving.is_heard:
                    return f"{host.address} has {giving.move} open: {giving.step}"
            for taking in handover_at(host).taking().values():
                if taking.sender in up:
                    return f"{host.address} still takes {taking.move}"
        return None

    def describe(self, host: Host) -> str:
        reading = engine_at(host).disk.reading.values()
        return "; ".join(f"{r.fragment}~{r.epoch} at {r.at} to {r.place}" for r in reading)


def engine_at(host: Host) -> HandoverEngine:
    assert host.stack is not None
    found = host.stack["engine"]
    assert isinstance(found, HandoverEngine)
    return found


def handover_at(host: Host) -> Handover:
    assert host.stack is not None
    found = host.stack["handover"]
    assert isinstance(found, Handover)
    return found
