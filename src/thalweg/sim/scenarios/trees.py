"""Dissemination trees: whatever happens to the trees, readers get what is due, once and in order.

Two homes, a stream each; nearly everybody reads both, within tolerances of their own, so that trees
share nodes and adapt at the same time. Rows are integers.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.overlay.trees.protocol import Capacity, Trees
from thalweg.overlay.trees.row_messages import Offer, Publish, Published, Read, Wanted
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.stream import Line, Row, Spec, Tree
from thalweg.overlay.trees.subscriptions import Subscriptions
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.world import World

MOST_HOSTS = 60  # with those that join during the storm
SPECS = (
    Spec("deviation", 0),
    Spec("deviation", 2),
    Spec("deviation", 5),
    Spec("updates", 2),
    Spec("age", 3),
)
Reading = tuple[Address, Tree]


class TreesScenario(Scenario):
    name = "trees"
    about = "dissemination trees that re-hang themselves while rows travel"
    fewest_nodes = 3
    most_nodes = 18
    warm_up_us = 6 * SECOND_US
    storm_us = 20 * SECOND_US
    settle_within_us = 60 * SECOND_US
    check_every_us = SECOND_US
    act_every_us = SECOND_US // 2
    homes = ("n1", "n2")
    circles_within_us = 9 * SECOND_US  # three rounds
    times = TreeTimes(
        round_us=3 * SECOND_US,
        window_us=SECOND_US,
        beat_us=SECOND_US // 2,
        lease_us=5 * SECOND_US // 2,
        stale_us=6 * SECOND_US,
        join_us=4 * SECOND_US // 5,
        wait_us=3 * SECOND_US // 2,
        move_us=2 * SECOND_US,
        hold_us=6 * SECOND_US,
    )

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.trees = tuple(Tree(home, f"s{i}") for i, home in enumerate(self.homes))
        self.value = dict.fromkeys(self.trees, 100)
        self.due: dict[Tree, dict[int, list[Line]]] = {t: {} for t in self.trees}
        self.klass: dict[Reading, tuple[int, int]] = {}  # class, and how many rows it has had
        self.wrong: str | None = None
        self.done: Counter[str] = Counter()

    def network(self) -> Hosts:
        return _network(self.options.seed % 8)

    def build(self, address: Address) -> Stack:
        membership = Membership()
        streams = Subscriptions(SECOND_US // 2, 5 * SECOND_US // 2)
        return Stack([membership, streams, self.make(membership, streams)])

    def make(self, membership: Membership, streams: Subscriptions) -> Trees:
        return Trees(membership, streams, self.times)

    def admit(self, world: World, address: Address) -> None:
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))
        drawn = Generator(seed_of(self.options.seed, address))
        capacity = Capacity(drawn.between(1_000, 60_000), drawn.between(100, 8_000))
        world.call(address, "trees", capacity)
        for tree in self.trees:
            self.klass.pop((address, tree), None)  # with an empty disk it is a new reader
            if tree.home == address:
                world.call(address, "subscriptions", Offer(tree))
            elif drawn.chance(0.85):
                world.call(address, "subscriptions", Read(tree, drawn.choice(SPECS)))

    def act(self, world: World) -> None:
        """New values; now and then a home stops, and comes back with its disk."""
        for tree in self.trees:
            host = world.hosts.get(tree.home)
            if host is None or not host.is_up:
                continue
            if "crash" in self.options.mean_gap_us and self.generator.chance(0.02):
                world.faults["home crash"] += 1
                world.crash(tree.home)
                world.kernel.after(
                    self.generator.between(SECOND_US // 2, 4 * SECOND_US), world.start, tree.home
                )
                continue
            for _ in range(self.generator.between(1, 3)):
                self.value[tree] += self.generator.between(-3, 3)
                world.call(tree.home, "subscriptions", Publish(tree, self.value[tree]))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        match value:
            case Published(tree, lines):
                for line in lines:
                    for klass in line.classes:
                        self.due[tree].setdefault(klass, []).append(line)
            case Wanted(tree, klass, begins):
                if (host.address, tree) not in self.klass:
                    due = self.due[tree].get(klass, [])
                    had = sum(line.at < begins for line in due)
                    self.klass[host.address, tree] = (klass, had)
            case Row(tree, at, got):
                self._check(host, tree, at, got)

    def _check(self, host: Host, tree: Tree, at: int, got: int) -> None:
        klass, had = self.klass[host.address, tree]
        due = self.due[tree].get(klass, [])
        expected = due[had] if had < len(due) else None
        if expected is None or (expected.at, expected.value) != (at, got):
            self.wrong = (
                f"{host.address} got row {at} ({got}) of {tree.stream}, "
                f"where {expected} was due for its class {klass}"
            )
        self.klass[host.address, tree] = (klass, had + 1)

    def can_spare(self, world: World, host: Host) -> bool:
        spared = super().can_spare(world, host) and are_acquainted(world, host)
        return spared and host.address not in self.homes

    # --- the promise ---

    def broken(self, world: World) -> str | None:
        if self.wrong is not None:
            return self.wrong
        quiet_us = world.now_us - self.warm_up_us - self.storm_us
        if quiet_us > self.circles_within_us:
            for tree in self.trees:
                circle = circle_of(world, tree)
                if circle:
                    return f"three rounds after the storm there is a circle: {', '.join(circle)}"
        return None

    def unsettled(self, world: World) -> str | None:
        for home in self.homes:
            if not world.hosts[home].is_up:
                return f"the home {home} is down"
        for host in findable(world):
            problem = self._lacking(world, host)
            if problem is not None:
                return problem
        return None

    def _lacking(self, world: World, host: Host) -> str | None:
        trees = trees_at(host)
        since_us = trees.holding.waits_since()
        now_us = host.clock.local_us(world.now_us)
        if since_us is not None and now_us - since_us > 2 * self.times.hold_us:
            return (
                f"{host.address} waits, or is held, since {(now_us - since_us) / SECOND_US:.1f} s"
            )
        for tree, relay in streams_at(host).relays.items():
            if relay.spec is None:
                continue
            if relay.klass is None:
                return f"{host.address} does not know its class of {tree.stream}"
            if (host.address, tree) not in self.klass:  # live: its word may be on the way
                return f"{host.address} has not said its class of {tree.stream}"
            klass, had = self.klass[host.address, tree]
            due = len(self.due[tree].get(klass, []))
            if had < due:
                return f"{host.address} has {had} of {due} rows of {tree.stream}"
            if not hangs_under_home(world, host.address, tree):
                return f"{host.address} does not hang under the home of {tree.stream}"
        return None

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        found = []
        for tree, place in trees_at(host).places.items():
            below = f" with {', '.join(place.children)}" if place.children else ""
            where = "home" if tree.home == host.address else f"under {place.parent or 'nobody'}"
            found.append(f"{tree.stream} {where}{below}")
        return "; ".join(found) or "in no tree"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        tree = next((t for t in self.trees if words and t.stream == words[0]), None)
        if verb == "publish" and tree is not None and len(words) == 2:
            self._publish(world, tree, int(words[1]))
            return []
        if verb == "tree" and tree is not None:
            return _drawn(world, tree, tree.home, "")
        return super().command(world, verb, words)

    def _publish(self, world: World, tree: Tree, count: int) -> None:
        """So many new values, ten a second."""
        self.value[tree] += self.generator.between(-3, 3)
        world.call(tree.home, "subscriptions", Publish(tree, self.value[tree]))
        if count > 1:
            world.kernel.after(SECOND_US // 10, self._publish, world, tree, count - 1)


@lru_cache
def _network(which: int) -> Hosts:
    topology = transit_stub.generate(transit_stub.small(96, longest_ms=120), which)
    return scattered(topology, MOST_HOSTS, which)


def _drawn(world: World, tree: Tree, address: Address, margin: str) -> list[str]:
    lines = [f"{margin}{address}"]
    place = trees_at(world.hosts[address]).places.get(tree)
    for child in sorted(place.children) if place is not None else ():
        host = world.hosts[child]
        below = trees_at(host).places.get(tree) if host.is_up else None
        if below is not None and below.parent == address:
            lines += _drawn(world, tree, child, f"{margin}  ")
    return lines


def trees_at(host: Host) -> Trees:
    assert host.stack is not None
    found = host.stack["trees"]
    assert isinstance(found, Trees)
    return found


def streams_at(host: Host) -> Subscriptions:
    assert host.stack is not None
    found = host.stack["subscriptions"]
    assert isinstance(found, Subscriptions)
    return found


def parent_of(world: World, address: Address, tree: Tree) -> Address | None:
    host = world.hosts.get(address)
    place = trees_at(host).places.get(tree) if host is not None and host.is_up else None
    return place.parent if place is not None and tree.home != address else None


def hangs_under_home(world: World, address: Address, tree: Tree) -> bool:
    """Every parent on the way knows its child."""
    at, met = address, set()
    while at != tree.home:
        parent = parent_of(world, at, tree)
        if parent is None or at in met or not world.hosts[parent].is_up:
            return False
        met.add(at)
        place = trees_at(world.hosts[parent]).places.get(tree)
        if place is None or at not in place.children:
            return False
        at = parent
    return True


def circle_of(world: World, tree: Tree) -> list[Address]:
    """Nodes each of which hangs under the next; empty if there are none."""
    for host in world.up():
        way: list[Address] = []
        at: Address | None = host.address
        while at is not None and at not in way:
            way.append(at)
            at = parent_of(world, at, tree)
        if at is not None:
            return way[way.index(at) :]
    return []
