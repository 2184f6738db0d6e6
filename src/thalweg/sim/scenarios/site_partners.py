"""Partners of a site over the hand-over: who asks gets it with its state, whoever stops.

Never, not even in the storm: a value that is not the sum of all rows so far (as `handover`); two
nodes that decide for a fragment; one that goes twice within ten rounds. In the end, beside what
`handover` promises, loads are within κ of the mean, but for the weight of one fragment.
"""

from __future__ import annotations

from collections import Counter

from thalweg.adapt.handover import Give, Giving, Handover
from thalweg.adapt.handover.messages import PRECOPY, Step
from thalweg.adapt.partners.settings import Settings
from thalweg.adapt.partners.site import GiveAway, Observed, Running, SitePartners
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address, Effect, Event, Heard, Tell, TimerFired
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.scenarios.handover import HandoverScenario, engine_at, handover_at
from thalweg.sim.scenarios.handover_engine import HandoverEngine, Owned
from thalweg.sim.world import World

REST_ROUNDS = 10
CLOCKS = 0.96  # how much shorter a rest may be where clocks drift by 2 %
MEAN_LOAD = 0.5


class SiteEngine(HandoverEngine):
    """Moves what partners agree on, and observes."""

    listens_to = ("handover", "partners")

    def __init__(
        self,
        world: SitePartnersScenario,
        address: Address,
        handover: Handover,
        members: Membership,
    ) -> None:
        super().__init__(world, address, handover)
        self.site, self._members = world, members

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Heard) and isinstance(event.value, GiveAway):
            return [*self._agreed(event.value), self._written()]
        effects = super().step(now_us, event)
        if isinstance(event, TimerFired):
            effects.append(Tell("partners", self._observed()))
        return effects

    def _give(self, owned: Owned) -> list[Effect]:
        return []  # nobody but partners decides

    def _agreed(self, asked: GiveAway) -> list[Effect]:
        owned = next((o for o in self.present() if o.fragment == asked.fragment), None)
        if owned is None:
            return []
        self.disk.moves += 1
        key = f"{owned.fragment}~{owned.epoch}"
        give = Give(f"{self.own}.{self.disk.moves}", key, asked.asker, owned.epoch + 1, PRECOPY)
        return [Tell("handover", give)]

    def present(self) -> list[Owned]:
        """What is computed here and was not given away."""
        return [o for o in self.disk.owned.values() if o.tau is None]

    def is_moving(self, owned: Owned) -> bool:
        key = f"{owned.fragment}~{owned.epoch}"
        giving = self._handover.giving().values()
        goes = any(g.fragment == key and g.step is not Step.KEPT for g in giving)
        return goes or owned.move in self._handover.taking()

    def _observed(self) -> Observed:
        site = self.site
        fragments = tuple(
            Running(
                o.fragment,
                site.weights[o.fragment],
                1000.0,
                site.homes[o.fragment],
                (site.reader(o.fragment),),
                is_moving=self.is_moving(o),
                has_moved=o.epoch > 0,
            )
            for o in self.present()
        )
        load = sum(f.load for f in fragments) + site.extern.get(self.own, 0.0)
        return Observed(load, fragments, tuple(self._members.up()))


class SitePartnersScenario(HandoverScenario):
    name = "site-partners"
    about = "partners agree on what moves, and the hand-over moves it with its state"
    most_nodes = 6
    warm_up_us = 15 * SECOND_US
    settle_within_us = 200 * SECOND_US
    suite_seeds = 10

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.agreeing = Settings(rest_rounds=REST_ROUNDS)
        count = len(self.hosts) * generator.between(3, 6)
        popular = generator.sample(self.hosts, 2)
        self._readers = {f"f{i}": generator.choice(self.hosts) for i in range(count)}
        self._owners = {
            f: generator.choice(popular if generator.chance(0.6) else self.hosts)
            for f in self._readers
        }
        self.homes = dict(self._owners)  # where a fragment begins
        share = MEAN_LOAD * len(self.hosts) / count
        self.weights = {f: share * (0.25 + 1.5 * generator.unit()) for f in self._readers}
        self.extern: dict[Address, float] = {}  # load that can't move
        self.given_us: dict[str, int] = {}
        self.steps: Counter[str] = Counter()

    def build(self, address: Address) -> Stack:
        membership, handover = Membership(), self.protocol()
        engine = SiteEngine(self, address, handover, membership)
        return Stack([membership, handover, self.partners(), engine])

    def partners(self) -> SitePartners:
        return SitePartners(self.agreeing)

    def reader(self, fragment: str) -> Address:
        return self._readers[fragment]

    def act(self, world: World) -> None:
        """Fragments get heavier or lighter, or another job takes some of a node's time."""
        if self.generator.chance(0.3):
            address = self.generator.choice(self.hosts)
            self.extern[address] = 0.0 if self.extern.get(address) else MEAN_LOAD / 2
            return
        factor, home = self.generator.choice((0.5, 2.0)), self.generator.choice(self.hosts)
        for fragment in (f for f, at in self.homes.items() if at == home):
            self.weights[fragment] = min(max(self.weights[fragment] * factor, 0.005), 0.3)

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, without=host)

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        super().delivered(host, protocol, value)
        if protocol == "engine" and isinstance(value, Giving) and value.step is Step.GIVEN:
            assert self.world is not None
            name = value.fragment.rpartition("~")[0]
            last_us = self.given_us.get(value.move)
            if last_us is not None:
                return  # said again
            self.given_us[value.move] = self.world.now_us
            before_us = self.given_us.get(name, -1_000 * SECOND_US)
            apart_us = self.world.now_us - before_us
            if apart_us < CLOCKS * REST_ROUNDS * self.agreeing.round_us:
                self.gap = f"{name} went twice within {apart_us / SECOND_US:.1f} s"
            self.given_us[name] = self.world.now_us

    # --- what was promised ---

    def broken(self, world: World) -> str | None:
        deciders: dict[str, Address] = {}
        for host in world.up():
            taking = handover_at(host).taking()
            for owned in site_engine_at(host).present():
                if owned.move in taking:
                    continue  # the sender has not decided, as far as is known here
                if owned.fragment in deciders:
                    other = deciders[owned.fragment]
                    return f"{other} and {host.address} both decide for {owned.fragment}"
                deciders[owned.fragment] = host.address
        return super().broken(world)

    def unsettled(self, world: World) -> str | None:
        found = super().unsettled(world)
        if found is not None:
            return found
        loads, movable = {}, {}
        for host in findable(world):
            present = site_engine_at(host).present()
            movable[host.address] = sum(self.weights[o.fragment] for o in present)
            loads[host.address] = movable[host.address] + self.extern.get(host.address, 0.0)
        return self._unbalanced(loads, movable)

    def _unbalanced(self, loads: dict[Address, float], movable: dict[Address, float]) -> str | None:
        """Work that can't move may be above the mean of all: nobody can take that away."""
        mean = _level(loads, self.extern)
        kappa, heaviest = self.agreeing.kappa, max(self.weights.values())
        for address, load in loads.items():
            if load > kappa * mean + heaviest and movable[address] > heaviest:
                return f"{address} has a load of {load:.3f}, the mean is {mean:.3f}"
            if load < mean / kappa - heaviest:
                return f"{address} has a load of {load:.3f} only, the mean is {mean:.3f}"
        return None

    def describe(self, host: Host) -> str:
        here = site_engine_at(host).present()
        loads = sum(self.weights[o.fragment] for o in here)
        return f"load {loads:.2f}; runs {', '.join(sorted(o.fragment for o in here)) or 'nothing'}"


def _level(loads: dict[Address, float], extern: dict[Address, float]) -> float:
    among = list(loads)
    while True:
        mean = sum(loads[a] for a in among) / len(among)
        rest = [a for a in among if extern.get(a, 0.0) <= mean]
        if len(rest) == len(among):
            return mean
        among = rest


def site_engine_at(host: Host) -> SiteEngine:
    found = engine_at(host)
    assert isinstance(found, SiteEngine)
    return found
