"""QuerySpreading: when nothing is lost and nobody fails, n − 1 messages, every node once, soon."""

from __future__ import annotations

from collections import Counter

from thalweg.overlay.chord.messages import Create
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.prefix.protocol import Prefix
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_spreading import Learned, QuerySpreading, Submit
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.world import World

SPREAD = ("query-spreading", "Spread")


class QuerySpreadingScenario(Scenario):
    """Even seeds on Chord, odd ones on the prefix overlay."""

    name = "query-spreading"
    about = "queries along the trees of Chord, or by rows of the prefix overlay"
    faults = ("duplication", "reordering", "skew")
    fewest_nodes = 2
    most_nodes = 16
    warm_up_us = 30 * SECOND_US  # until the overlay stands
    storm_us = 10 * SECOND_US
    settle_within_us = 20 * SECOND_US
    check_every_us = SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.on_chord = options.seed % 2 == 0
        self.submitted: list[str] = []
        self.reached: Counter[tuple[Address, str]] = Counter()
        self.hops: dict[tuple[Address, str], int] = {}

    def build(self, address: Address) -> Stack:
        membership = Membership()
        routing = Chord(membership) if self.on_chord else Prefix(membership)
        return Stack([membership, routing, QuerySpreading(routing)])

    def admit(self, world: World, address: Address) -> None:
        contacts = tuple(contact(world, self.generator, address))
        world.call(address, "membership", Join(contacts))
        if self.on_chord and not contacts:
            world.call(address, "chord", Create())

    def act(self, world: World) -> None:
        if world.now_us >= self.warm_up_us:
            root = self.generator.choice(world.up()).address
            self._submit(world, root, f"q{len(self.submitted) + 1}")

    def _submit(self, world: World, root: Address, query: str) -> None:
        self.submitted.append(query)
        world.call(root, "query-spreading", Submit(query, f"SELECT {query}"))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Learned):
            assert value.hops is not None
            self.reached[host.address, value.record.id] += 1
            self.hops[host.address, value.record.id] = value.hops

    def broken(self, world: World) -> str | None:
        allowed = len(self.submitted) * (len(world.up()) - 1)
        if world.sent[SPREAD] > allowed:
            queries = len(self.submitted)
            return f"{world.sent[SPREAD]} messages for {queries} queries; {allowed} would do"
        again = [key for key, times in self.reached.items() if times > 1]
        if again:
            return f"{again[0][0]} was told of {again[0][1]} twice"
        # On a ring with right fingers each hop at least halves the scope; a finger that is not
        # fixed yet costs a few more.
        deepest = max(self.hops.values(), default=0)
        if deepest > len(world.up()).bit_length() + 4:
            return f"{deepest} hops deep with {len(world.up())} nodes"
        return None

    def unsettled(self, world: World) -> str | None:
        for host in world.up():
            for query in self.submitted:
                if not self.reached[host.address, query]:
                    return f"{host.address} does not know {query}"
        return None

    def describe(self, host: Host) -> str:
        known = (
            f"{q} ({self.hops[host.address, q]})"
            for q in self.submitted
            if (host.address, q) in self.hops
        )
        return ", ".join(known) or "no queries"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "submit", [address, query]:
                self._submit(world, address, query)
                return []
        return super().command(world, verb, words)
