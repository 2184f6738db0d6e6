"""SwAP: whatever order rows take, what is final is the reference's changelog, all of it, once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from thalweg.adapt.swap.messages import Accepted, Drop, End, Feed, Final, Submit, Took
from thalweg.adapt.swap.protocol import Swap
from thalweg.adapt.swap.query import FOREVER, Values
from thalweg.adapt.swap.sites import site_of
from thalweg.adapt.swap.state import SiteState
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.scenarios.swap_world import INSTANT_US, Draw, draw, expected
from thalweg.sim.world import World

# A plan's sites are given, and no row has a second copy.
NOT_COVERED = ("join", "leave", "restart lost")


@dataclass(slots=True)
class Feeder:
    """A stream's source at one site."""

    stream: int
    site: Address
    key: int = 0
    upto: int = 0  # as accepted
    open: dict[int, Values] = field(default_factory=dict)  # rows that can be ended


class SwapScenario(Scenario):
    name = "swap"
    about = "joins across sites whose order is chosen batch by batch"
    faults = tuple(f for f in FAULTS if f not in NOT_COVERED)
    fewest_nodes = 2
    most_nodes = 6
    warm_up_us = 2 * SECOND_US
    storm_us = 14 * SECOND_US
    settle_within_us = 60 * SECOND_US
    stay_us = 0
    act_every_us = SECOND_US // 5
    suite_seeds = 15

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.sites = tuple(f"n{i}" for i in range(1, max(2, options.nodes) + 1))
        self.draw: Draw = draw(generator, self.sites)
        self.query = self.draw.query
        nodes, homes = self.query.plan.djg.nodes, self.query.plan.djg.home
        self.feeders = {
            (stream, site): Feeder(stream, site)
            for stream, home in enumerate(homes)
            for site in nodes[home].sites
        }
        self.fed: dict[int, list[tuple[int, str, Values]]] = {s: [] for s in range(len(homes))}
        self.instants: dict[tuple[int, Address, int], int] = {}  # of each (stream, site, key)
        self.said: list[Final] = []
        self.wrong: str | None = None
        self.final_at: int | None = None
        self.taken: int | None = None  # of what is final, and the sink has not heard
        self.is_judged = False
        self.happened: Counter[str] = Counter()  # what happened, for tests

    def build(self, address: Address) -> Stack:
        return Stack([Swap(self.draw.settings)])

    def admit(self, world: World, address: Address) -> None:
        if address == self.query.sink:
            world.call(address, "swap", Submit(self.query))

    # --- workload ---

    def act(self, world: World) -> None:
        """Tuples come and end; where sites may crash, one stops and comes back with its disk."""
        now = world.now_us // INSTANT_US
        if self.taken is not None:
            world.call(self.query.sink, "swap", Took("q", self.taken))
            self.taken = None
        if "crash" in self.options.mean_gap_us and self.generator.chance(0.08):
            address = self.generator.choice(self.sites)
            if world.hosts[address].is_up:
                world.faults["site crash"] += 1
                world.crash(address)
                gap_us = self.generator.between(SECOND_US // 10, 2 * SECOND_US)
                world.kernel.after(gap_us, self._bring_back, world, address)
        for feeder in self.feeders.values():
            if self.generator.chance(0.6):
                self._feed(world, feeder, now)
            if feeder.open and self.generator.chance(0.2 + 0.15 * len(feeder.open)):
                key = self.generator.choice(list(feeder.open))
                world.call(feeder.site, "swap", End("q", feeder.stream, key, now))

    def _bring_back(self, world: World, address: Address) -> None:
        if not world.hosts[address].is_up:
            world.faults["restart kept"] += 1
            world.start(address)

    def _feed(self, world: World, feeder: Feeder, now: int) -> None:
        rows = []
        for _ in range(self.generator.choice((0, 1, 1, 2))):
            values = (self._value(), self._value())
            if self._belongs(feeder, values):
                feeder.key += 1
                rows.append((feeder.key, now + self.generator.below(3), values))
        world.call(feeder.site, "swap", Feed("q", feeder.stream, tuple(rows), now))

    def _value(self) -> int | None:
        return None if self.generator.chance(0.03) else self.generator.below(self.draw.domain)

    def _belongs(self, feeder: Feeder, values: Values) -> bool:
        node = self.query.plan.djg.nodes[self.query.plan.djg.home[feeder.stream]]
        if not node.is_parallel or not node.edges or node.split_by is not None:
            return True
        return site_of(values[node.key_column(feeder.stream)], node.sites) == feeder.site

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        match value:
            case Accepted(Feed(_, stream, tuples, upto)):
                feeder = self.feeders[stream, host.address]
                feeder.upto = max(feeder.upto, upto)
                for key, instant, values in tuples:
                    self.fed[stream].append((instant, "+", values))
                    if self.query.windows[stream] is None:
                        feeder.open[key] = values
                    self.instants[stream, host.address, key] = instant
            case Accepted(End(_, stream, key, at)):
                feeder = self.feeders[stream, host.address]
                if key in feeder.open:
                    values = feeder.open.pop(key)
                    start = self.instants[stream, host.address, key]
                    self.happened["void" if at <= start else "ended"] += 1
                    self.fed[stream].append((max(at, start), "-", values))
            case Final(_, since, upto, changes):
                before = self.said[-1].upto if self.said else None
                if before is not None and before != since:
                    self.wrong = f"instants from {since} on are said after those up to {before}"
                self.said.append(value)
                self.happened["changes"] += len(changes)
                self.taken = upto

    # --- the promise ---

    def broken(self, world: World) -> str | None:
        return self.wrong

    def unsettled(self, world: World) -> str | None:
        for address in self.sites:
            self._bring_back(world, address)  # the storm may have left it off; its disk is whole
        if self.is_judged:
            return self._dropped(world)
        if self.final_at is None:
            longest = max((w for w in self.query.windows if w is not None), default=0)
            self.final_at = world.now_us // INSTANT_US + longest + 10
        late = [f for f in self.feeders.values() if f.upto < self.final_at]
        for feeder in late:
            world.call(feeder.site, "swap", Feed("q", feeder.stream, (), self.final_at))
        if late:
            return f"{late[0].site} has not fed all of stream {late[0].stream}"
        if not self.said or self.said[-1].upto < self.final_at:
            return f"said up to {self.said[-1].upto if self.said else None} of {self.final_at}"
        left = self._judge() or self._left_over(world)
        self.is_judged = left is None
        return left or "the query stands"

    def _dropped(self, world: World) -> str | None:
        """At last it ends, everywhere, and leaves nothing."""
        world.call(self.query.sink, "swap", Drop("q"))
        for host in world.up():
            kept = [k for k in host.disk.get("swap", {}) if k.startswith("q/")]
            if kept:
                return f"{host.address} keeps {kept[0]} of a query that was dropped"
        return None

    def _judge(self) -> str | None:
        assert self.final_at is not None
        said = [c for final in self.said for c in final.changes]
        wanted = [(c.ts, c.op, c.row) for c in expected(self.query, self.fed, self.final_at)]
        if said != wanted:
            missing, extra = Counter(wanted) - Counter(said), Counter(said) - Counter(wanted)
            first, odd = (min(c, key=repr, default=None) for c in (missing, extra))
            self.wrong = (
                f"{sum(missing.values())} changes missing (first {first}), "
                f"{sum(extra.values())} too many (first {odd}) of {len(wanted)}"
            )
        return self.wrong

    def _left_over(self, world: World) -> str | None:
        """Once all is said: nothing waits, and only rows that have no end are kept."""
        assert self.final_at is not None
        for host in world.up():
            state = state_at(host)
            if state is None:
                continue
            for node, eddy in state.eddies.items():
                kept = [r for s in eddy.stems.values() for r in s.rows.values()]
                old = [r for r in kept if r.end <= self.final_at]
                if old:
                    return f"{host.address} keeps {len(old)} rows of node {node} that have ended"
                if any(m.end < FOREVER for m in eddy.sent.values()):
                    return f"{host.address} remembers rows of node {node} that have ended"
                if eddy.pending:
                    return f"{host.address} has rows of node {node} that go nowhere"
            if any(out.entries for out in state.outs.values()):
                return f"{host.address} has entries that were not taken"
        return None

    def describe(self, host: Host) -> str:
        state = state_at(host)
        if state is None:
            return "does not take part"
        names = [n.name for n in self.query.plan.djg.nodes]
        parts = [
            f"{names[node]} has {sum(len(s.rows) for s in eddy.stems.values())} rows"
            for node, eddy in state.eddies.items()
        ]
        parts += [f"{names[a]} to {names[b]} {n}" for (a, b), n in sorted(state.routed.items())]
        if state.sink is not None:
            parts.append(f"said up to {state.sink.said}")
        return "; ".join(parts) or "no part of the plan"


def state_at(host: Host) -> SiteState | None:
    assert host.stack is not None
    swap = host.stack["swap"]
    assert isinstance(swap, Swap)
    return swap.queries.get("q")
