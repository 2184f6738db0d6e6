"""Put and get: what was put and acknowledged stays, through losses of fewer than r neighbours."""

from __future__ import annotations

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.dht.messages import Failed, Get, Got, Put, PutDone
from thalweg.overlay.dht.protocol import Dht
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenarios.chord import SETTINGS, ChordScenario, members, tables_unsettled
from thalweg.sim.scenarios.membership import open_accusation
from thalweg.sim.world import World


class DhtScenario(ChordScenario):
    name = "dht"
    about = "values put on a Chord ring, each with copies that follow its owner"
    most_nodes = 9
    settle_within_us = 60 * SECOND_US
    storm_us = 13 * SECOND_US
    act_every_us = 3 * SECOND_US // 4

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.requests = 0
        self.put: dict[str, list[bytes]] = {}  # key -> values ever put, oldest first
        self.puts: dict[int, tuple[str, bytes]] = {}
        self.acknowledged: dict[str, bytes] = {}  # key -> the last value known to be stored
        self.gets: dict[int, str] = {}
        self.wrong: list[str] = []
        self.final: dict[int, str] | None = None  # gets after the storm, still open

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        return FAULTS

    def build(self, address: Address) -> Stack:
        membership = Membership()
        chord = Chord(membership, SETTINGS)
        return Stack([membership, chord, Dht(chord)])

    def act(self, world: World) -> None:
        host = self.generator.choice(world.up())
        self.requests += 1
        if self.put and self.generator.chance(0.5):
            key = self.generator.choice(list(self.put))
            self.gets[self.requests] = key
            world.call(host.address, "dht", Get(key, self.requests))
        else:
            # Each key once: which of two puts at a time wins is not promised.
            key, value = f"k{self.requests}", b"v%d" % self.requests
            self.put[key] = [value]
            self.puts[self.requests] = (key, value)
            world.call(host.address, "dht", Put(key, value, self.requests))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        match value:
            case PutDone(int(tag)):
                key, stored = self.puts.pop(tag)
                self.acknowledged[key] = stored
            case Got(int(tag), found):
                key = self.gets.pop(tag)
                if found is not None and found not in self.put[key]:
                    self.wrong.append(f"{host.address} got {found!r} for {key}: never put there")
                if self.final is not None and tag in self.final:
                    del self.final[tag]
                    if found != self.acknowledged[key]:
                        self.final[tag] = f"{host.address} got {found!r} for {key}"
            case Failed(int(tag)):
                self.puts.pop(tag, None)
                if self.gets.pop(tag, None) is not None and self.final is not None:
                    self.final[tag] = f"a get at {host.address} failed"

    def can_spare(self, world: World, host: Host) -> bool:
        """As for the ring; and of everything acknowledged another live node has a copy."""
        if not super().can_spare(world, host):
            return False
        rest = [dht_at(h) for h in members(world) if h is not host]
        return all(any(key in dht.items for dht in rest) for key in self.acknowledged)

    def broken(self, world: World) -> str | None:
        return self.wrong[0] if self.wrong else None

    def unsettled(self, world: World) -> str | None:
        missing = tables_unsettled(world) or open_accusation(world)
        if problem := missing or self._copies_problem(world):
            self.final = None
            return problem
        return self._last_gets(world)

    def _copies_problem(self, world: World) -> str | None:
        """As many nodes hold a key as have to, and all alike."""
        holders: dict[str, list[Host]] = {}
        for host in members(world):
            for key in dht_at(host).items:
                holders.setdefault(key, []).append(host)
        wanted = min(len(members(world)), SETTINGS.successors)
        for key, hosts in holders.items():
            if len({dht_at(h).items[key] for h in hosts}) > 1:
                return f"copies of {key} differ"
            if len(hosts) != wanted:
                names = ", ".join(h.address for h in hosts)
                return f"{key} is held by {names}, and should be by {wanted}"
        return None

    def _last_gets(self, world: World) -> str | None:
        if self.final is None:
            self.final = {}
            for key in list(self.acknowledged)[-20:]:
                host = self.generator.choice(members(world))
                self.requests += 1
                self.gets[self.requests] = key
                self.final[self.requests] = f"{host.address} has no answer for {key}"
                world.call(host.address, "dht", Get(key, self.requests))
        return next(iter(self.final.values()), None)

    def describe(self, host: Host) -> str:
        items = sorted(dht_at(host).items.items())
        return ", ".join(f"{k}={i.value.decode()}@{i.version}" for k, i in items) or "nothing"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "put", [address, key, value]:
                self.requests += 1
                self.put.setdefault(key, []).append(value.encode())
                self.puts[self.requests] = (key, value.encode())
                world.call(address, "dht", Put(key, value.encode(), self.requests))
                return []
            case "get", [address, key]:
                self.requests += 1
                self.gets[self.requests] = key
                world.call(address, "dht", Get(key, self.requests))
                return []
        return super().command(world, verb, words)


def dht_at(host: Host) -> Dht:
    assert host.stack is not None
    found = host.stack["dht"]
    assert isinstance(found, Dht)
    return found
