"""Gossip: whatever failed while queries spread, in the end every live node has every query."""

from __future__ import annotations

from thalweg.overlay.chord.messages import Create
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.gossip import Gossip, GossipTimes
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_spreading import Drop, QuerySpreading, Submit
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.world import World

TIMES = GossipTimes(floor_us=SECOND_US // 2, ceiling_us=4 * SECOND_US, settle_us=SECOND_US // 2)


class GossipScenario(Scenario):
    """Even seeds on Chord, odd ones on the prefix overlay."""

    name = "gossip"
    about = "queries and tombstones, repaired by comparing tables"
    fewest_nodes = 3
    most_nodes = 14
    storm_us = 15 * SECOND_US
    settle_within_us = 120 * SECOND_US
    check_every_us = SECOND_US
    act_every_us = SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.on_chord = options.seed % 2 == 0
        self.submitted: dict[str, str] = {}  # -> text
        self.dropped: set[str] = set()
        self.buried: dict[tuple[Address, int], set[str]] = {}  # (host, life) -> known tombstones

    def build(self, address: Address) -> Stack:
        membership = Membership()
        routing = Chord(membership) if self.on_chord else Prefix(membership)
        return Stack([membership, routing, *self.above(routing)])

    def above(self, routing: Chord | Prefix) -> list[QuerySpreading | Gossip]:
        spreading = QuerySpreading(routing)
        return [spreading, Gossip(routing, spreading, TIMES)]

    def admit(self, world: World, address: Address) -> None:
        contacts = tuple(contact(world, self.generator, address))
        world.call(address, "membership", Join(contacts))
        if self.on_chord and not contacts:
            world.call(address, "chord", Create())

    def act(self, world: World) -> None:
        """A new query, or one less, at a node that attends."""
        ready = [h for h in world.up() if not h.paused and not h.busy]
        if not ready:
            return
        host = self.generator.choice(ready)
        standing = table_at(host).table.standing
        if standing and self.generator.chance(0.3):
            query = self.generator.choice(standing)
            self.dropped.add(query)
            world.call(host.address, "query-spreading", Drop(query))
        else:
            query = f"q{len(self.submitted) + 1}"
            self.submitted[query] = f"SELECT {query} FROM {host.address}"
            world.call(host.address, "query-spreading", Submit(query, self.submitted[query]))

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, host)

    def broken(self, world: World) -> str | None:
        for host in world.up():
            buried = self.buried.setdefault((host.address, host.lives), set())
            for record in table_at(host).table:
                if record.id not in self.submitted:
                    return f"{host.address} knows {record.id}, which nobody submitted"
                if record.dropped and record.id not in self.dropped:
                    return f"{host.address} buried {record.id}, which nobody dropped"
                if not record.dropped and record.text != self.submitted[record.id]:
                    return f"{host.address} has another text for {record.id}"
                if not record.dropped and record.id in buried:
                    return f"{record.id} came back from the dead at {host.address}"
                if record.dropped:
                    buried.add(record.id)
        return None

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        best: dict[str, bool] = {}  # -> whether anybody knows that it was dropped
        for host in hosts:
            for record in table_at(host).table:
                best[record.id] = best.get(record.id, False) or record.dropped
        for host in hosts:
            for query, dropped in best.items():
                known = table_at(host).table.get(query)
                if known is None:
                    return f"{host.address} does not know {query}"
                if dropped and not known.dropped:
                    return f"{host.address} does not know that {query} was dropped"
        return None

    def describe(self, host: Host) -> str:
        records = sorted(table_at(host).table, key=lambda r: r.id)
        return " ".join(f"-{r.id}" if r.dropped else r.id for r in records) or "no queries"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "submit", [address, query]:
                self.submitted[query] = f"SELECT {query} FROM {address}"
                request = Submit(query, self.submitted[query])
                world.call(address, "query-spreading", request)
                return []
            case "drop", [address, query]:
                self.dropped.add(query)
                world.call(address, "query-spreading", Drop(query))
                return []
        return super().command(world, verb, words)


def table_at(host: Host) -> QuerySpreading:
    assert host.stack is not None
    found = host.stack["query-spreading"]
    assert isinstance(found, QuerySpreading)
    return found
