"""A Chord ring of any size, as it stands once quiet, with queries and failures for an hour.

A thousand nodes that join one by one would take most of a run to find each other. So the tables are
filled with what the protocol would have found; from then on everything is the protocols' own work.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from thalweg.experiments.catalogue._printed_gossip import PrintedGossip
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.protocol import Settings as ChordSettings
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.gossip import Gossip, GossipTimes
from thalweg.overlay.membership import Membership
from thalweg.overlay.membership import Settings as MembershipSettings
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_spreading import Learned, QuerySpreading, Submit
from thalweg.overlay.routing import IDS, id_of
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import ALIVE, Word
from thalweg.sim.host import Host
from thalweg.sim.kernel import HOUR_US, SECOND_US
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.world import World

HOP_US = 100_000  # DHTJoin 5.4: 100 ms between any two nodes
VIEW = 48  # members that a node keeps an eye on, beside its neighbours in the ring


@dataclass(frozen=True, slots=True)
class Hour:
    """What happens in a simulated hour."""

    nodes: int
    queries_per_hour: float
    departs_per_5min: float
    stabilise_s: float
    gossip: GossipTimes
    seed: int
    hours: float = 1.0
    quiet_s: float = 2_000.0  # after the hour, without queries and failures
    as_in_source: str = ""  # Algorithm 10 "printed", or as "meant", instead of gossip as it is here


@dataclass(slots=True)
class Seen:
    queries: int = 0
    departed: int = 0
    spread: int = 0
    redundant: int = 0
    pulls: int = 0
    pushes: int = 0
    by_tree: float = 0.0  # coverage by spreading alone, of nodes that have been there since
    coverage: float = 0.0  # with gossip, at the end of the hour
    later: float = 0.0  # with gossip, when queries have stopped for a while
    incomplete: int = 0  # queries that some node lacks then
    deepest: int = 0
    repair_s: list[float] = field(default_factory=list)  # ages of records that came by gossip
    upkeep: int = 0  # messages of membership and ring
    period_s: float = 0.0  # mean T_gossip of all nodes, at the end of the hour

    @property
    def gossip(self) -> int:
        return self.pulls + self.pushes


def ring_world(hour: Hour, on_deliver: Callable[[Host, str, object], None]) -> World:
    """All nodes switched on, in a ring that is whole."""
    period_us = int(hour.stabilise_s * SECOND_US)
    members = MembershipSettings(
        period_us=period_us,
        ack_within_us=SECOND_US,
        suspect_after_us=2 * SECOND_US,
        down_after_us=5 * SECOND_US,
        compare_every_us=20 * period_us,
        capacity=4 * VIEW,
    )
    ring = ChordSettings(
        stabilise_every_us=period_us,
        fix_finger_every_us=2 * period_us,  # one of them at a time
        find_self_every_us=20 * period_us,
        answer_within_us=SECOND_US,
    )

    def build(address: Address) -> Stack:
        membership = Membership(members)
        chord = Chord(membership, ring)
        spreading = QuerySpreading(chord)
        return Stack([membership, chord, spreading, _gossip(hour, chord, spreading)])

    world = World(build, seed=hour.seed, network=UniformNetwork(HOP_US), on_deliver=on_deliver)
    for i in range(hour.nodes):
        world.start(f"n{i}")
    complete_tables(world, Generator(seed_of(hour.seed, "views")))
    gc.collect()
    gc.freeze()  # a thousand nodes live on: looking through them for garbage costs a quarter
    return world


def _gossip(hour: Hour, chord: Chord, spreading: QuerySpreading) -> Gossip | PrintedGossip:
    if not hour.as_in_source:
        return Gossip(chord, spreading, hour.gossip)
    as_meant = hour.as_in_source == "meant"
    return PrintedGossip(chord, spreading, hour.gossip.fixed_us, as_meant=as_meant)


def complete_tables(world: World, generator: Generator) -> None:
    ordered = sorted((id_of(a), a) for a in world.hosts)
    ids = [i for i, _ in ordered]
    addresses = [a for _, a in ordered]
    count = len(addresses)
    for position, address in enumerate(addresses):
        stack = world.hosts[address].stack
        assert stack is not None
        chord, membership = stack["chord"], stack["membership"]
        assert isinstance(chord, Chord)
        assert isinstance(membership, Membership)
        chord.joined = True
        after = [addresses[(position + i) % count] for i in range(1, chord.settings.successors + 1)]
        chord.table.follow(after)
        chord.table.predecessor = addresses[position - 1]
        finger = chord.table.finger_after(0)
        while finger < 64:
            key = (ids[position] + (1 << finger)) % IDS
            finger = chord.table.set_finger(finger, addresses[bisect_left(ids, key) % count])
        known = [*chord.neighbours(), *after, *generator.sample(addresses, VIEW)]
        for other in dict.fromkeys(known):
            if other != address:
                membership.view.take(Word(other, 0, ALIVE))


def live_through(hour: Hour) -> Seen:
    """The hour, and what came of it.

    One run shows spreading with and without gossip: what is sent along the trees does not
    depend on what gossip brought, so coverage without it is what came along the trees.
    """
    seen = Seen()
    submitted_us: dict[str, int] = {}
    by_tree: dict[str, set[Address]] = {}

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Learned):
            if value.hops is None:
                seen.repair_s.append((world.now_us - submitted_us[value.record.id]) / SECOND_US)
            else:
                by_tree[value.record.id].add(host.address)
                seen.deepest = max(seen.deepest, value.hops)

    world = ring_world(hour, on_deliver)
    generator = Generator(seed_of(hour.seed, "hour"))
    end_us = int(hour.hours * HOUR_US)

    def submit() -> None:
        query = f"q{len(submitted_us) + 1}"
        submitted_us[query] = world.now_us
        by_tree[query] = set()
        root = generator.choice(world.up()).address
        world.call(root, "query-spreading", Submit(query, f"SELECT {query}"))

    def depart() -> None:
        seen.departed += 1
        world.crash(generator.choice(world.up()).address)

    _at_random(world, generator, hour.queries_per_hour * hour.hours, end_us, submit)
    _at_random(world, generator, hour.departs_per_5min * 12 * hour.hours, end_us, depart)
    world.kernel.run_until(end_us)
    world.run_for(5 * SECOND_US)  # what was on its way arrives
    seen.queries = len(submitted_us)
    seen.by_tree = _coverage(world, lambda host, query: host.address in by_tree[query], by_tree)
    seen.coverage = _coverage(world, knows, by_tree)
    _count(world, seen)
    world.run_for(int(hour.quiet_s * SECOND_US))
    seen.later = _coverage(world, knows, by_tree)
    seen.incomplete = sum(not all(knows(h, q) for h in world.up()) for q in by_tree)
    gc.unfreeze()
    return seen


def _at_random(
    world: World, generator: Generator, count: float, end_us: int, act: Callable[[], None]
) -> None:
    """As in a Poisson stream of which the number in the hour is known."""
    for at_us in sorted(generator.below(end_us) for _ in range(round(count))):
        world.kernel.at(at_us, act)


def knows(host: Host, query: str) -> bool:
    return _spreading(host).table.get(query) is not None


def _spreading(host: Host) -> QuerySpreading:
    assert host.stack is not None
    found = host.stack["query-spreading"]
    assert isinstance(found, QuerySpreading)
    return found


def _coverage(world: World, has: Callable[[Host, str], bool], queries: Iterable[str]) -> float:
    """Of nodes alive since the submission: nobody joins, so these are all that run now."""
    shares = [sum(has(h, q) for h in world.up()) / len(world.up()) for q in queries]
    return sum(shares) / len(shares) if shares else 1.0


def _count(world: World, seen: Seen) -> None:
    seen.spread = world.sent["query-spreading", "Spread"]
    sent = world.sent
    seen.pulls = sent["gossip", "Pull"] + sent["gossip", "Recent"]
    seen.pushes = sent["gossip", "Push"] + sent["gossip", "Missed"]
    periods = [h.stack["gossip"].period_us for h in world.up() if h.stack]  # type: ignore[attr-defined]
    seen.period_s = sum(periods) / len(periods) / SECOND_US
    seen.upkeep = sum(n for (p, _), n in world.sent.items() if p in ("membership", "chord"))
    seen.redundant = sum(_spreading(h).redundant for h in world.up())
