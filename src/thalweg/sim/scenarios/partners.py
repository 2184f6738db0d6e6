"""Partners: fragments move between nodes, and each has one node that decides.

Never, not even in the storm: two nodes that decide for one fragment; a fragment that starts above
the last instant that was said of it (rows would be missing); state that is not that of its instant;
a fragment that moves twice within ten rounds. In the end: each fragment whose home runs is decided
for by one node, and loads are within κ of the mean, but for the weight of one fragment.
"""

from __future__ import annotations

from collections import Counter

from thalweg.adapt.partners.homes import EPOCHS_PER_US
from thalweg.adapt.partners.messages import Delegate, Fragment, Moved
from thalweg.adapt.partners.protocol import Partners
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.scenarios.fragment_engine import FragmentEngine
from thalweg.sim.world import World

REST_ROUNDS = 10
CLOCKS = 0.96  # how much shorter a rest may be where clocks drift by 2 %
MEAN_LOAD = 0.5


class PartnersScenario(Scenario):
    name = "partners"
    about = "fragments that move to who has less to do, each decided for by one node"
    fewest_nodes = 3
    most_nodes = 12
    warm_up_us = 15 * SECOND_US
    settle_within_us = 150 * SECOND_US
    act_every_us = 2 * SECOND_US
    suite_seeds = 12  # a run takes half a second
    check_every_us = SECOND_US // 2

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.settings = Settings(rest_rounds=REST_ROUNDS)
        self.weights: dict[str, float] = {}
        self.extern: dict[Address, float] = {}  # load that can't move
        self.fragments: dict[Address, tuple[Fragment, ...]] = {}
        self.said: dict[str, int] = {}  # all instants below it were said
        self.moved_us: dict[
            str, tuple[int, int]
        ] = {}  # fragment -> the last move's epoch, and when
        self.steps: Counter[str] = Counter()
        self.gap: str | None = None
        self.world: World | None = None
        self._draw_queries()

    def _draw_queries(self) -> None:
        """Queries over two or three streams: a fragment for each, in a line."""
        generator, nodes = self.generator, max(self.options.nodes, 3)
        hosts = [f"n{i}" for i in range(1, nodes + 1)]
        # Few fragments of all weights, or many light ones; some nodes' streams are more popular.
        queries = nodes * (generator.between(2, 4) if self.options.seed % 2 else 10)
        popular = [hosts[0], *generator.sample(hosts, 2)]
        drawn: list[list[tuple[str, Address]]] = []
        for q in range(queries):
            count = generator.between(2, 3)
            some = generator.sample(hosts, count)
            if generator.chance(0.6):
                some[0] = generator.choice(popular)
            drawn.append([(f"q{q}.{i}", home) for i, home in enumerate(some)])
        by_home: dict[Address, list[Fragment]] = {}
        share = MEAN_LOAD * nodes / sum(len(q) for q in drawn)
        for query in drawn:
            for i, (name, home) in enumerate(query):
                near = tuple(query[max(0, i - 1) : i] + query[i + 1 : i + 2])
                by_home.setdefault(home, []).append(Fragment(name, home, near))
                self.weights[name] = share * (0.25 + 1.5 * generator.unit())
        self.fragments = {home: tuple(found) for home, found in by_home.items()}

    def build(self, address: Address) -> Stack:
        membership = Membership()
        partners = self.protocol(membership)
        return Stack([membership, partners, FragmentEngine(self, partners, address)])

    def protocol(self, membership: Membership) -> Partners:
        return Partners(membership, self.settings)

    def admit(self, world: World, address: Address) -> None:
        self.world = world
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))
        if fragments := self.fragments.get(address):
            world.call(address, "partners", Delegate(fragments))

    def act(self, world: World) -> None:
        """Streams of a node get faster or slower, or another job takes some of its time."""
        address = self.generator.choice(list(self.fragments))
        if self.generator.chance(0.3):
            self.extern[address] = 0.0 if self.extern.get(address) else MEAN_LOAD / 2
            return
        factor = self.generator.choice((0.5, 2.0))
        for fragment in self.fragments[address]:
            weight = self.weights[fragment.name] * factor
            self.weights[fragment.name] = min(max(weight, 0.002), 0.2)

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, without=host)

    # --- what the engines of the nodes do ---

    @property
    def instant(self) -> int:
        """How far the streams are."""
        return 0 if self.world is None else self.world.now_us // 1000

    def starts(self, address: Address, fragment: str, upto: int, state: bytes) -> None:
        if upto > self.said.get(fragment, 0):
            said = self.said.get(fragment, 0)
            self.gap = f"{fragment} starts at {upto} at {address}, and was said up to {said} only"
        if state and int(state) != upto:
            self.gap = f"{fragment} came to {address} at {upto} with the state of {state.decode()}"

    def says(self, fragment: str, upto: int) -> None:
        self.said[fragment] = max(upto, self.said.get(fragment, 0))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if protocol == "partners" and isinstance(value, Moved):
            self.steps["moved"] += 1
            assert self.world is not None
            never = (-1, -1_000 * SECOND_US)
            epoch, last_us = self.moved_us.get(value.fragment, never)
            apart_us = self.world.now_us - last_us
            if epoch == value.epoch:
                return  # shipped again to one who lost its disk
            same_life = value.epoch - epoch < EPOCHS_PER_US  # the home has not lost its disk
            if same_life and apart_us < CLOCKS * REST_ROUNDS * self.settings.round_us:
                self.gap = f"{value.fragment} moved twice within {apart_us / SECOND_US:.1f} s"
            self.moved_us[value.fragment] = (value.epoch, self.world.now_us)

    # --- what was promised ---

    def broken(self, world: World) -> str | None:
        if self.gap is not None:
            return self.gap
        deciders: dict[str, Address] = {}
        for host in world.up():
            now_us = host.clock.local_us(world.now_us)
            holdings = at(host).holdings
            for name in holdings.held:
                if holdings.decides(name, now_us):
                    if name in deciders:
                        return f"{deciders[name]} and {host.address} both decide for {name}"
                    deciders[name] = host.address
        return None

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        up = {h.address for h in hosts}
        loads = {h.address: self.extern.get(h.address, 0.0) for h in hosts}
        decided: set[str] = set()
        for host in hosts:
            now_us = host.clock.local_us(world.now_us)
            holdings = at(host).holdings
            for name in holdings.held:
                if holdings.decides(name, now_us):
                    decided.add(name)
                    loads[host.address] += self.weights[name]
        for home, fragments in self.fragments.items():
            for fragment in fragments:
                if home in up and fragment.name not in decided:
                    return f"nobody decides for {fragment.name} of {home}"
        return self._unbalanced(loads)

    def _unbalanced(self, loads: dict[Address, float]) -> str | None:
        mean = self._level(loads)
        kappa, heaviest = self.settings.kappa, max(self.weights.values())
        for address, load in loads.items():
            extern = self.extern.get(address, 0.0)
            if load > kappa * mean + heaviest and load - extern > heaviest:
                return f"{address} has a load of {load:.3f}, the mean is {mean:.3f}"
            if load < mean / kappa - heaviest:
                return f"{address} has a load of {load:.3f} only, the mean is {mean:.3f}"
        return None

    def _level(self, loads: dict[Address, float]) -> float:
        """The mean, but for nodes whose other work alone is above it: nobody can take that away."""
        among = list(loads)
        while True:
            mean = sum(loads[a] for a in among) / len(among)
            rest = [a for a in among if self.extern.get(a, 0.0) <= mean]
            if len(rest) == len(among):
                return mean
            among = rest

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        node = at(host)
        names = ", ".join(sorted(node.holdings.held)) or "nothing"
        return f"load {node.load:.2f}; runs {names}"


def at(host: Host) -> Partners:
    assert host.stack is not None
    found = host.stack["partners"]
    assert isinstance(found, Partners)
    return found
