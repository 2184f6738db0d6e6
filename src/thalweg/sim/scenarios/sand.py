"""SAND's placement: in the end every query stands whole, exactly once, or not at all."""

from __future__ import annotations

from functools import cache, lru_cache

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.messages import DropQuery, Observe, PlaceQuery
from thalweg.overlay.sand.planning import Told, place_zone, told_of_source
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.query import TreeQuery
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zones import Zone, cut, zone_key
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import NONE
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenarios.chord import SETTINGS, ChordScenario, members, owner_of, tables_unsettled
from thalweg.sim.scenarios.sand_queries import balanced, draw_query
from thalweg.sim.world import World

PLACING = SandSettings(
    renew_every_us=3 * SECOND_US // 2,
    lease_us=5 * SECOND_US,
    measure_within_us=SECOND_US,
    remeasure_every_us=10 * SECOND_US,
)
MOST_QUERIES = 4
MOST_HOSTS = 60  # with those that join during the storm


class SandScenario(ChordScenario):
    name = "sand"
    about = "queries placed operator by operator, by coordinators found on a Chord ring"
    most_nodes = 9
    storm_us = 12 * SECOND_US
    settle_within_us = 90 * SECOND_US
    stay_us = 4 * SECOND_US
    check_every_us = SECOND_US
    act_every_us = 2 * SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.asked: dict[str, TreeQuery] = {}  # all that were ever asked for
        self.dropped: dict[str, None] = {}
        self._rates = Generator(seed_of(options.seed, "rates"))  # leaves the others' draws alone

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        return FAULTS

    def network(self) -> Hosts:
        return _network(self.options.seed % 4)

    def build(self, address: Address) -> Stack:
        membership = Membership()
        chord = Chord(membership, SETTINGS)
        return Stack([membership, chord, self.sand(chord, membership)])

    def sand(self, chord: Chord, membership: Membership) -> Sand:
        return Sand(chord, membership, PLACING)

    def act(self, world: World) -> None:
        wanted = [name for name in self.asked if name not in self.dropped]
        if wanted and self.generator.chance(0.2):
            self.drop(world, self.generator.choice(wanted))
        elif len(self.asked) < MOST_QUERIES:
            hosts = [h.address for h in world.up()]
            self.place(world, draw_query(f"q{len(self.asked) + 1}", hosts, self.generator))
        self.drift(world)

    def drift(self, world: World) -> None:
        """Some host sees another rate; where rates alone decide, `_expected` would not know it."""
        seen = [
            (host, name, node)
            for host in world.up()
            for name, node in (*sand_at(host).hosting.running, *sand_at(host).hosting.sources)
            if cut(self.asked[name])[0].is_measured
        ]
        if seen:
            host, name, node = self._rates.choice(seen)
            rate_bps = self.asked[name].nodes[node].rate_bps * self._rates.choice(
                (0.1, 0.9, 1.1, 9)
            )
            world.call(host.address, "sand", Observe(name, node, rate_bps))

    def place(self, world: World, query: TreeQuery) -> None:
        self.asked[query.name] = query
        world.call(query.proxy, "sand", PlaceQuery(query))

    def drop(self, world: World, name: str) -> None:
        self.dropped[name] = None
        proxy = world.hosts[self.asked[name].proxy]
        if proxy.is_up and name in sand_at(proxy).proxying.queries:
            world.call(proxy.address, "sand", DropQuery(name))

    # --- what is promised ---

    def broken(self, world: World) -> str | None:
        for host in world.up():
            now_us = host.clock.local_us(world.now_us)
            for (name, node), running in sand_at(host).hosting.running.items():
                if name not in self.asked:
                    return f"{host.address} runs {name}/{node}, which nobody asked for"
                pinned = self.asked[name].nodes[node].pinned
                if pinned not in (None, host.address):
                    return f"{host.address} runs {name}/{node}, which is pinned at {pinned}"
                slack_us = 2 * PLACING.renew_every_us
                stands_still = host.paused or host.busy or host.step_cost_us
                if running.until_us + slack_us < now_us and not stands_still and not host.waiting:
                    return f"{host.address} runs {name}/{node} without a lease"
        return None

    def unsettled(self, world: World) -> str | None:
        if problem := tables_unsettled(world):
            return problem
        live = {name for host in world.up() for name in sand_at(host).proxying.queries}
        for name, query in self.asked.items():
            hosts = mapped(world, name)
            is_whole = name in live and all(
                world.hosts[n.pinned].is_up for n in query.nodes if n.pinned is not None
            )
            problem = (
                half_placed(world, query, hosts) if is_whole else leftovers(world, query, hosts)
            )
            problem = problem or self._forgotten_zone(world, name, name in live)
            if problem is not None:
                return problem
        return None

    def _forgotten_zone(self, world: World, query: str, is_live: bool) -> str | None:
        """A zone has one coordinator, the owner of its key, while somebody asks for the query."""
        for host in world.up():
            for name, zone in sand_at(host).coordinating.duties:
                if name != query:
                    continue
                if not is_live:
                    return f"{host.address} coordinates {name}/{zone}, which nobody asks for"
                if host.address != owner_of(zone_key(name, zone), members(world)):
                    return f"{host.address} coordinates {name}/{zone}, which is not its own"
        return None

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        sand = sand_at(host)
        runs = sorted(f"{query}/{node}" for query, node in sand.hosting.running)
        zones = sorted(f"{query}/{zone}" for query, zone in sand.coordinating.duties)
        return f"runs {', '.join(runs) or 'nothing'}; coordinates {', '.join(zones) or 'nothing'}"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "place", [name, proxy, *sources] if sources:
                self.place(world, balanced(name, proxy, sources))
                return []
            case "drop", [name] if name in self.asked:
                self.drop(world, name)
                return []
            case "where", [name] if name in self.asked:
                hosts = mapped(world, name)
                names = [n.name for n in self.asked[name].nodes]
                return [f"{names[n]} at {', '.join(hosts[n])}" for n in sorted(hosts)]
        return super().command(world, verb, words)


@lru_cache
def _network(which: int) -> Hosts:
    """With places that are nearer to some than to others: else no host is ever in between."""
    topology = transit_stub.generate(transit_stub.small(96, longest_ms=120), which)
    return scattered(topology, MOST_HOSTS, which)


def sand_at(host: Host) -> Sand:
    assert host.stack is not None
    found = host.stack["sand"]
    assert isinstance(found, Sand)
    return found


def mapped(world: World, query: str) -> dict[int, list[Address]]:
    """Of each node that is mapped anywhere, where."""
    found: dict[int, list[Address]] = {}
    for host in world.up():
        for name, node in sand_at(host).hosting.running:
            if name == query:
                found.setdefault(node, []).append(host.address)
    return found


def leftovers(world: World, query: TreeQuery, hosts: dict[int, list[Address]]) -> str | None:
    """Of a query that nobody asks for any more, or that can't stand, nothing is left."""
    for node, places in hosts.items():
        return f"{query.name}/{node} is left over at {', '.join(places)}"
    for host in world.up():
        for (name, node), source in sand_at(host).hosting.sources.items():
            if name == query.name and source.taker is not None:
                return f"{host.address} still feeds {name}/{node} to {source.taker}"
    return None


def half_placed(world: World, query: TreeQuery, hosts: dict[int, list[Address]]) -> str | None:
    """What is missing to a query that stands whole, and whom its neighbours' coordinators know."""
    zones = cut(query)
    for zone in zones:
        for operator in zone.operators:
            if len(places := hosts.get(operator.node, [])) != 1:
                return f"{query.name}/{operator.node} is mapped at {', '.join(places) or 'no host'}"
    at = {node: places[0] for node, places in hosts.items()}
    at.update({i: n.pinned for i, n in enumerate(query.nodes) if n.pinned is not None})
    for zone in zones:
        if problem := _unknown(world, query, zone, at) or _astray(world, query, zone, at):
            return problem
    told = sand_at(world.hosts[query.proxy]).proxying.stands.get(query.name)
    if told is None or any(told.at[node] != place for node, place in at.items()):
        return f"{query.proxy} does not know where {query.name} stands"
    if not zones[0].is_measured:  # else it depends on clocks, and on the peers that were met
        expected = _expected(query)
        for node, place in expected.items():
            if at[node] != place:
                return f"{query.name}/{node} stands at {at[node]}, and should at {place}"
    return None


def _unknown(world: World, query: TreeQuery, zone: Zone, at: dict[int, Address]) -> str | None:
    """The zone's coordinator knows where its operators, their inputs and their taker stand."""
    owner = owner_of(zone_key(query.name, zone.top), members(world))
    duty = sand_at(world.hosts[owner]).coordinating.duties.get((query.name, zone.top))
    if duty is None or duty.plan is None:
        return f"{owner} should coordinate {query.name}/{zone.top}"
    stand = duty.stand()
    for node, place in stand.items():
        if at[node] != place:
            return f"{owner} thinks {query.name}/{node} at {place}, and it is at {at[node]}"
    parent = query.nodes[zone.top].parent
    taker = duty.word.taker if duty.word is not None else None
    if parent != NONE and taker != at[parent]:
        return f"{owner} thinks {query.name}/{parent} at {taker}, and it is at {at[parent]}"
    return None


def _astray(world: World, query: TreeQuery, zone: Zone, at: dict[int, Address]) -> str | None:
    """Each host and each source knows where streams come from and go to."""
    for operator in zone.operators:
        running = sand_at(world.hosts[at[operator.node]]).hosting.running[query.name, operator.node]
        inputs = tuple((i, at[i]) for i in operator.inputs)
        parent = query.nodes[operator.node].parent
        taker = None if parent == NONE else at[parent]
        if (running.inputs, running.taker) != (inputs, taker):
            return f"{at[operator.node]} runs {query.name}/{operator.node} with other neighbours"
        for child in zone.boundary:
            if child.source is not None and child.node in operator.inputs:
                source = sand_at(world.hosts[child.source]).hosting.sources.get(
                    (query.name, child.node)
                )
                if source is None or source.taker != at[operator.node]:
                    return f"{child.source} does not feed {query.name}/{child.node} to its taker"
    return None


@cache
def _expected(query: TreeQuery) -> dict[int, Address]:
    """Where Edge puts everything when nothing fails, zone by zone."""
    plans = {}
    told: dict[int, Told] = {}
    zones = cut(query)
    for zone in zones:
        for child in zone.boundary:
            if child.source is not None:
                told[child.node] = told_of_source(child.source, ())
        plan = place_zone(zone, {b.node: told[b.node] for b in zone.boundary}, {})
        assert plan is not None
        plans[zone.top], told[zone.top] = plan, plan.told()
    at = {query.root: query.proxy}
    for zone in reversed(zones):
        at.update(plans[zone.top].stand(at[zone.top]))
    return at
