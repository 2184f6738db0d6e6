"""Alerts: in the end an operator is active exactly if somebody needs what it makes."""

from __future__ import annotations

from thalweg.overlay.alerts.messages import Install, Operator, SetAble, Want
from thalweg.overlay.alerts.protocol import Alerts
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.world import World

LEASE_US = 3 * SECOND_US


# DHTJoin, figure 4.6: (V ⋈ W) ⋈ ((X ⋈ Y) ⋈ Z). Scripts play with it.
PLAN_OF_THE_SOURCE: dict[str, tuple[Address, tuple[str, ...]]] = {
    **dict.fromkeys("VWXYZ", ("n5", ())),
    "VW": ("n1", ("V", "W")),
    "XY": ("n2", ("X", "Y")),
    "XYZ": ("n3", ("XY", "Z")),
    "top": ("n4", ("VW", "XYZ")),
}


class AlertsScenario(Scenario):
    """A random plan over the first nodes: sources, then joins of earlier operators."""

    name = "alerts"
    about = "producers that rest while nobody can use what they make"
    faults = tuple(f for f in FAULTS if f not in ("join", "leave"))  # a plan's hosts are given
    fewest_nodes = 3
    most_nodes = 10
    settle_within_us = 60 * SECOND_US
    act_every_us = SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.home: dict[str, Address] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.wanted: dict[str, set[str]] = {}
        self.flows: dict[str, bool] = {}
        if options.nodes:
            self._draw_plan()
        else:
            for name, (home, inputs) in PLAN_OF_THE_SOURCE.items():
                self._plan(name, home, inputs)

    def _plan(self, name: str, home: Address, inputs: tuple[str, ...]) -> None:
        self.home[name], self.inputs[name], self.wanted[name] = home, inputs, set()
        if not inputs:
            self.flows[name] = True

    def _draw_plan(self) -> None:
        generator = self.generator
        sources = generator.between(2, 4)
        for i in range(sources + generator.between(2, 6)):
            name = f"s{i}" if i < sources else f"j{i}"
            inputs = () if i < sources else tuple(generator.sample(list(self.home), 2))
            self._plan(name, f"n{1 + generator.below(self.options.nodes)}", inputs)

    def build(self, address: Address) -> Stack:
        return Stack([Alerts(LEASE_US)])

    def admit(self, world: World, address: Address) -> None:
        """Its operators, as whoever deploys the plan would install them (again)."""
        for name, home in self.home.items():
            if home == address and name not in alerts_at(world.hosts[address]).installed:
                inputs = tuple((i, self.home[i]) for i in self.inputs[name])
                world.call(address, "alerts", Install(Operator(name, inputs)))
                self.wanted[name].clear()
                if name in self.flows:
                    self.flows[name] = True

    def act(self, world: World) -> None:
        """A query comes or goes, or a source falls silent or speaks again."""
        name = self.generator.choice(list(self.home))
        host = world.hosts[self.home[name]]
        if not host.is_up or host.paused or host.busy:
            return
        if name in self.flows and self.generator.chance(0.3):
            self.flows[name] = not self.flows[name]
            world.call(host.address, "alerts", SetAble(name, self.flows[name]))
            return
        query = f"q{self.generator.below(2)}"
        self.wanted[name] ^= {query}
        world.call(host.address, "alerts", Want(name, query, query in self.wanted[name]))

    def broken(self, world: World) -> str | None:
        """Demand that is gone is forgotten within a lease."""
        for host in world.up():
            if not host.paused and not host.busy and not host.waiting:
                late = alerts_at(host).overdue(host.clock.local_us(world.now_us))
                if late:
                    return f"{host.address} keeps {late[0]} active on a lease that ran out"
        return None

    def unsettled(self, world: World) -> str | None:
        needed = self.needed(world)
        for host in world.up():
            active = set(alerts_at(host).active)
            for name in alerts_at(host).installed:
                if (name in active) != (name in needed):
                    state = "active" if name in active else "at rest"
                    return f"{name} at {host.address} is {state}, and that is wrong"
        return None

    def needed(self, world: World) -> set[str]:
        """From the whole plan, as no node can see it."""
        able: dict[str, bool] = {}
        for name, inputs in self.inputs.items():  # inputs come before who uses them
            runs = world.hosts[self.home[name]].is_up
            able[name] = runs and self.flows.get(name, True) and all(able[i] for i in inputs)
        needed: set[str] = set()
        for name in reversed(list(self.inputs)):
            if not world.hosts[self.home[name]].is_up:
                continue
            if self.wanted[name]:
                needed.add(name)
            if name in needed:
                inputs = self.inputs[name]
                needed |= {i for i in inputs if all(able[o] for o in inputs if o != i)}
        return {n for n in needed if world.hosts[self.home[n]].is_up}

    def describe(self, host: Host) -> str:
        active = alerts_at(host).active
        installed = sorted(alerts_at(host).installed)
        return ", ".join(f"{n} {'active' if n in active else 'rests'}" for n in installed) or "idle"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "plan", []:
                return [
                    f"{name} at {self.home[name]}"
                    + (f" joins {', '.join(inputs)}" if inputs else "")
                    for name, inputs in self.inputs.items()
                ]
            case "want" | "unwant", [name] if name in self.home:
                change = {"q"} if (verb == "want") != ("q" in self.wanted[name]) else set()
                self.wanted[name] ^= change
                world.call(self.home[name], "alerts", Want(name, "q", verb == "want"))
                return []
            case "stop" | "flow", [name] if name in self.flows:
                self.flows[name] = verb == "flow"
                world.call(self.home[name], "alerts", SetAble(name, verb == "flow"))
                return []
        return super().command(world, verb, words)


def alerts_at(host: Host) -> Alerts:
    assert host.stack is not None
    found = host.stack["alerts"]
    assert isinstance(found, Alerts)
    return found
