"""Many seeds of many scenarios: what they met, and which failed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product

from thalweg.sim.kernel import HOUR_US
from thalweg.sim.run import Outcome, run
from thalweg.sim.scenarios.registry import scenario_named


@dataclass(slots=True)
class Tally:
    """Sums over the runs of a scenario."""

    scenario: str
    seeds: int = 0
    steps: int = 0
    simulated_us: int = 0
    slowest_to_settle_us: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)  # seed -> problem
    met: Counter[tuple[str, str]] = field(default_factory=Counter)  # (step, fault) -> seeds
    struck: Counter[tuple[str, str]] = field(default_factory=Counter)  # (message, fault) -> seeds

    @property
    def encounters(self) -> dict[tuple[str, str], int]:
        """Every message that was sent by every fault that met any: in how many seeds they met."""
        messages = sorted({f"{protocol} {kind}" for protocol, kind in self.sent})
        faults = sorted({fault for _, fault in self.struck})
        return {cell: self.struck[cell] for cell in product(messages, faults)}

    @property
    def simulated_hours(self) -> float:
        return self.simulated_us / HOUR_US

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.simulated_us += outcome.simulated_us
        self.slowest_to_settle_us = max(self.slowest_to_settle_us, outcome.settled_after_us or 0)
        self.faults += outcome.faults
        self.sent += outcome.sent
        self.met.update(outcome.met)
        self.struck.update(outcome.struck)
        if outcome.problem is not None:
            self.failed[outcome.options.seed] = outcome.problem


def soak(
    names: list[str],
    first_seed: int,
    seeds: int,
    *,
    jobs: int = 1,
    progress: Callable[[Outcome, int, int], None] | None = None,
) -> list[Tally]:
    """Each scenario under `seeds` seeds; `progress` hears of each run, how many of all are done."""
    for name in names:
        scenario_named(name)
    tallies = {name: Tally(name) for name in names}
    for name, tally in tallies.items():
        tally.met.update(dict.fromkeys(scenario_named(name).cells, 0))
    todo = [(name, seed) for name in names for seed in range(first_seed, first_seed + seeds)]
    for number, outcome in enumerate(_outcomes(todo, jobs), start=1):
        tallies[outcome.scenario].add(outcome)
        if progress is not None:
            progress(outcome, number, len(todo))
    return list(tallies.values())


def _outcomes(todo: list[tuple[str, int]], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(_run, todo)
        return
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        yield from pool.map(_run, todo, chunksize=20)


def _run(what: tuple[str, int]) -> Outcome:
    name, seed = what
    return run(scenario_named(name), seed)
