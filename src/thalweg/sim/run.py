"""One run of a scenario under one seed: warm-up, storm, healing, verdict."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from thalweg.overlay.generator import Generator, seed_of
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options, draw
from thalweg.sim.scenario import Scenario
from thalweg.sim.storm import Storm, enter
from thalweg.sim.trace import Trace
from thalweg.sim.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    scenario: str
    options: Options
    problem: str | None  # None: all that was promised held
    settled_after_us: int | None  # from the healing on
    simulated_us: int
    steps: int
    sent: Counter[tuple[str, str]]
    faults: Counter[str]
    digest: str
    met: tuple[tuple[str, str], ...] = ()  # (step, fault)
    struck: frozenset[tuple[str, str]] = frozenset()  # (message, fault)


class Broken(Exception):
    """A promise did not hold."""


def options_of(kind: type[Scenario], seed: int, nodes: int | None = None) -> Options:
    return draw(seed, kind.faults_of(seed), kind.fewest_nodes, kind.most_nodes, nodes)


def run(
    kind: type[Scenario],
    seed: int,
    *,
    nodes: int | None = None,
    show: Callable[[str], None] | None = None,
) -> Outcome:
    if nodes is not None and nodes < 1:
        raise ValueError(f"{nodes} nodes: a network has at least one")
    options = options_of(kind, seed, nodes)
    scenario = kind(options, Generator(seed_of(seed, "workload")))
    trace = Trace(show)
    world = World(
        scenario.build,
        seed=seed,
        network=scenario.network(),
        trace=trace,
        on_deliver=scenario.delivered,
    )
    problem, settled_after_us = None, None
    try:
        settled_after_us = _live_through(world, scenario, options)
    except Broken as error:
        problem = f"at {world.now_us / SECOND_US:.3f} s: {error}"
    except Exception as error:  # a protocol's own mistake is a finding like any other
        problem = f"at {world.now_us / SECOND_US:.3f} s: {_where(error)}"
    return Outcome(
        scenario=kind.name,
        options=options,
        problem=problem,
        settled_after_us=settled_after_us,
        simulated_us=world.now_us,
        steps=world.steps,
        sent=world.sent,
        faults=world.faults,
        digest=trace.digest,
        met=tuple(sorted(scenario.met)),
        struck=frozenset(world.struck),
    )


def _live_through(world: World, scenario: Scenario, options: Options) -> int:
    for number in range(1, options.nodes + 1):
        address = f"n{number}"
        enter(world, scenario, options, address)
        scenario.admit(world, address)
    storm_from_us = scenario.warm_up_us
    storm_to_us = storm_from_us + scenario.storm_us
    _act_until(world, scenario, storm_to_us)
    _watch(world, scenario, storm_from_us)
    storm = Storm(world, scenario, options)
    _watch(world, scenario, storm_to_us)
    storm.heal()
    return _settle(world, scenario)


def _act_until(world: World, scenario: Scenario, end_us: int) -> None:
    mean_us = scenario.act_every_us

    def act_again() -> None:
        if world.now_us < end_us:
            scenario.act(world)
            gap_us = scenario.generator.between(mean_us // 2, mean_us + mean_us // 2)
            world.kernel.after(gap_us, act_again)

    world.kernel.after(mean_us // 2, act_again)


def _watch(world: World, scenario: Scenario, end_us: int) -> None:
    while world.now_us < end_us:
        world.run_for(min(scenario.check_every_us, end_us - world.now_us))
        _check(world, scenario)


def _check(world: World, scenario: Scenario) -> None:
    if (problem := scenario.broken(world)) is not None:
        raise Broken(problem)


def _settle(world: World, scenario: Scenario) -> int:
    """Until it is settled, and on until it has stayed so; gives the time that it took."""
    healed_us, settled_us = world.now_us, None
    while True:
        missing = scenario.unsettled(world)
        if missing is None:
            settled_us = world.now_us if settled_us is None else settled_us
            if world.now_us - settled_us >= scenario.stay_us:
                return settled_us - healed_us
        elif world.now_us - healed_us >= scenario.settle_within_us:
            bound_s = scenario.settle_within_us // SECOND_US
            raise Broken(f"not settled {bound_s} s after the healing: {missing}")
        else:
            settled_us = None
        world.run_for(scenario.check_every_us)
        _check(world, scenario)


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{type(error).__name__} in {frame.name} ({place}): {error}"
