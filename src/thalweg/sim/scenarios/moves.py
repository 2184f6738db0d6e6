"""Buckets on the move: the union says the reference's changelog, whatever moves and whoever stops.

Fixed roles: n1 is the manager, n2 the union and the first split, n3 the other splits; they stop
and come back with their disks (the manager now and then without it). All others are processors,
which may be lost. Each seed draws its join, its windows and its ways, and aims faults at steps of
moves (`moves_strikes.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

from thalweg.adapt.balancing.policy import Balancer, Settings
from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.manager.manager import Decide
from thalweg.adapt.moves.messages.records import Ended, StartMove, Stepped
from thalweg.adapt.moves.messages.requests import (
    Assign,
    Final,
    Publish,
    Published,
    Reshape,
    Reshaped,
)
from thalweg.adapt.moves.protocol import Moves
from thalweg.adapt.moves.query import Row
from thalweg.adapt.moves.state.shapes import all_shapes
from thalweg.adapt.moves.ways import WAYS
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.scenarios.moves_promises import left_over, moves_at, slowest, two_owners
from thalweg.sim.scenarios.moves_queries import (
    BUCKETS,
    FINE,
    difference,
    drawn_operator,
    drawn_query,
    wanted,
)
from thalweg.sim.scenarios.moves_strikes import CELLS, MANAGER, ROLES, SPLIT, UNION, Strikes
from thalweg.sim.world import World


class MovesScenario(Scenario):
    name = "moves"
    about = "bucket ranges of a join that move between nodes: exact results, one owner each"
    fewest_nodes = 6
    most_nodes = 9
    warm_up_us: ClassVar[int] = 3 * SECOND_US
    storm_us: ClassVar[int] = 18 * SECOND_US
    settle_within_us: ClassVar[int] = 90 * SECOND_US
    stay_us: ClassVar[int] = 0
    check_every_us: ClassVar[int] = SECOND_US // 4
    act_every_us: ClassVar[int] = SECOND_US // 8
    suite_seeds: ClassVar[int] = 12
    cells = CELLS
    times = Times()
    moves: ClassVar[type[Moves]] = Moves

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.query = drawn_query(generator)
        others = Generator(seed_of(options.seed, "operator"))
        self.at_once = others.choice((1, 2, 4))
        # One key has half of the rows; joins of more streams would drown in its results.
        self.hot_key = others.chance(0.5) and len(self.query.streams) == 2
        self.query = replace(self.query, buckets=others.choice((BUCKETS, FINE)))
        if others.chance(0.4):
            operator = drawn_operator(others, len(self.query.streams))
            self.query = replace(self.query, operator=operator)
        self.shapes = all_shapes(len(self.query.streams))
        self.domain = generator.between(3, 8) + 2 * len(self.query.streams)
        self.other_version = generator.chance(0.1)
        self.balances = generator.chance(0.3)
        self.local = Generator(seed_of(options.seed, "local")).chance(0.5)
        self.reshaped = 0
        self.published: dict[int, list[Row]] = {leaf: [] for leaf in range(len(self.query.streams))}
        self.finals: list[Final] = []
        self.strikes = Strikes(options.seed, options.latency_us, self.can_spare)
        self.strikes.rage(self.warm_up_us, self.warm_up_us + self.storm_us)
        self.met = self.strikes.met
        self.ended: Counter[str] = Counter()
        self.wrong: str | None = None
        self._world: World | None = None
        self._assigned = False
        self._ended_at: int | None = None
        self._judged = False
        self.directory = Directory(
            (UNION, *[SPLIT] * (len(self.query.streams) - 1)), UNION, MANAGER
        )

    # --- nodes ---

    def build(self, address: Address) -> Stack:
        seed = sum(map(ord, address)) + self.options.seed
        shape = self.shapes[seed % len(self.shapes)]
        version = "2" if self.other_version and seed % 4 == 0 else "1"
        decide: Decide | None = Balancer(self.query, Settings()).decide if self.balances else None
        moves = self.moves(
            self.query,
            shape,
            self.directory,
            self.times,
            version=version,
            decide=decide,
            local=self.local,
        )
        return Stack([moves])

    def admit(self, world: World, address: Address) -> None:
        """Nodes need no introduction: their configuration names the manager."""
        self._world = world

    # --- workload ---

    def act(self, world: World) -> None:
        if not self._assigned:
            self._assign(world)
            return
        for _ in range(self.generator.choice((2, 4, 6, 8))):
            leaf = self.generator.below(len(self.query.streams))
            home = world.hosts[self.directory.splits[leaf]]
            if home.is_up:
                key, value = self.generator.below(self.domain), self.generator.below(3)
                if self.hot_key and self.generator.chance(0.5):
                    key = 0
                world.call(home.address, "moves", Publish(leaf, key, value))
        if self.generator.chance(0.2):
            self._move(world)
        if self.generator.chance(0.05):
            self._reshape(world)
        if "crash" in self.options.mean_gap_us and self.generator.chance(0.02):
            self._stop(world, world.hosts[self.generator.choice(ROLES)])
        if "pause" in self.options.mean_gap_us and self.generator.chance(0.01):
            self._pause(world, world.hosts[self.generator.choice(ROLES)])

    def _assign(self, world: World) -> None:
        up = [h.address for h in world.up() if h.address not in ROLES]
        if len(up) < self.options.nodes - len(ROLES):
            return
        self._assigned = True
        buckets = self.query.buckets
        half = buckets // 2  # one has half of the load, as in D-CAPE's experiments
        rest = up[1:] or up
        each = (buckets - half) // len(rest)
        parts = [(0, half, up[0])]
        for i, address in enumerate(rest):
            lo = half + i * each
            parts.append((lo, buckets if i == len(rest) - 1 else lo + each, address))
        world.call(UNION, "moves", Assign(tuple(parts)))

    def _move(self, world: World) -> None:
        hosts = [h.address for h in world.up() if h.address not in ROLES]
        if len(hosts) < 2 or not world.hosts[MANAGER].is_up:
            return
        g, manager = self.generator, moves_at(world.hosts[MANAGER]).manager
        assert manager is not None
        sender, receiver = g.sample(hosts, 2)
        way = g.choice((*WAYS, *self.strikes.ways))
        if len(manager.moves) + len(manager.waiting) < self.at_once:
            share = g.choice((0.2, 0.5, 0.8))
            world.call(MANAGER, "moves", StartMove(sender, receiver, share, way))
        elif len(manager.waiting) < 2 and g.chance(0.3):  # the same buckets, once more
            known = [m for m in manager.moves.values() if m.lo >= 0]
            for m in known[:1]:
                to = sender if m.receiver != sender else receiver
                again = StartMove(m.receiver, to, 0.0, way, lo=m.lo, hi=m.hi)
                world.call(MANAGER, "moves", again)

    def _reshape(self, world: World) -> None:
        hosts = [h.address for h in world.up() if h.address not in ROLES]
        if hosts:
            lo = self.generator.below(self.query.buckets)
            shape = self.generator.choice(self.shapes).text(self.query.streams)
            address = self.generator.choice(hosts)
            world.call(address, "moves", Reshape(lo, self.query.buckets, shape))

    def _stop(self, world: World, host: Host) -> None:
        if host.is_up:
            world.faults["role crash"] += 1
            lost = host.address == MANAGER and self.generator.chance(0.3)
            self.strikes.crash(world, host, lost=lost)

    def _pause(self, world: World, host: Host) -> None:
        if host.is_up and not host.paused:
            world.faults["role pause"] += 1
            self.strikes.pause(world, host)

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Published):
            self.published[value.leaf].append(value.row)
        elif isinstance(value, Final):
            if self.finals and self.finals[-1].upto != value.since:
                self.wrong = f"instants from {value.since} on after {self.finals[-1].upto}"
            self.finals.append(value)
        elif isinstance(value, Reshaped):
            self.reshaped += 1
        elif isinstance(value, Stepped):
            assert self._world is not None
            self.strikes.stepped(self._world, value)
        elif isinstance(value, Ended):
            self.strikes.ended(value)
            self.ended[f"{value.move.way} {value.outcome.split(':')[0]}"] += 1

    # --- promises ---

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        return FAULTS

    def can_spare(self, world: World, host: Host) -> bool:
        if host.address in ROLES:
            return False
        return sum(h.address not in ROLES and not h.paused for h in world.up()) > 2

    def broken(self, world: World) -> str | None:
        return self.wrong or two_owners(world)

    def unsettled(self, world: World) -> str | None:
        for role in ROLES:
            if not world.hosts[role].is_up:
                return f"{role} is down"
        if self._ended_at is None:
            self._ended_at = 1 + max(
                (r[0] for rows in self.published.values() for r in rows), default=0
            )
        final_at = self._ended_at + self.query.longest + 2
        said = self.finals[-1].upto if self.finals else 0
        if said < final_at:
            return f"said {said} of {final_at}: {slowest(world)}"
        if not self._judged:
            self._judged = True
            expected = wanted(self.query, self.times.instant_us, self.published, said)
            self.wrong = difference([c for f in self.finals for c in f.changes], expected)
        return None if self.balances else left_over(world, self.query.buckets)

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        moves = moves_at(host)
        if moves.processor is None:
            return "split, union or manager"
        return (
            "; ".join(
                f"{h.meta.lo}-{h.meta.hi - 1} {h.meta.kind} epoch {h.meta.epoch}"
                for h in moves.processor.holdings
            )
            or "nothing"
        )
