"""Runs of Algorithm 1's solver: a system filled, queries from saturation on, and room it finds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.cost import Weights, cost_of
from thalweg.placement.milp.solving import Limits
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr_milp import SqprMilp
from thalweg.placement.strategy import Decision, OnlinePlanner, Options
from thalweg.placement.verify import verify

NODES = 1_000_000  # no limit: seconds are the source's
SHUT_OUT = 3  # refusals: from the third on, a system counts as saturated
ROOM_SECONDS = 5.0
EARLY = 0.5  # of the queries: nobody is refused yet, so all planners have admitted the same


@dataclass(frozen=True, slots=True)
class Course:
    admitted: int
    mean_s: float  # CPU of one core, for a query
    p95_s: float
    clock: int  # searches that the clock ended
    early_cpu: float = 0.0  # share of all CPU that the first half of the queries takes


Spot = Course  # of queries from saturation on


class SolverLast(SqprMilp):
    """The programme decides; the solver is asked only where that finds no plan."""

    def submit(self, queries: Sequence[int]) -> Decision:
        self._add_by_the_programme(
            list(queries), [self.placing.abstract(query) for query in queries]
        )
        return super().submit(queries)


def fill(
    problem: Problem,
    *,
    strategy: str,
    work_limit: int = NODES,
    seconds: float = 60.0,
    batch: int = 1,
    balance: float = 1.0,
) -> Course:
    options = Options(
        work_limit=work_limit, reuse="none", batch=batch, weights=Weights(balance=balance)
    )
    planner: OnlinePlanner
    if strategy == "sqpr":
        planner = Sqpr(problem, options)
    else:
        made = SolverLast if strategy == "solver last" else SqprMilp
        planner = made(problem, options, seconds=seconds)
    return _submit(problem, planner, range(len(problem.queries)), batch)


def from_saturation(problem: Problem, seconds: float, count: int) -> Spot:
    """The programme fills the system; from its third refusal on, the solver takes over."""
    planner = Sqpr(problem, Options(work_limit=0, reuse="none"))
    refused = 0
    first = 0
    while refused < SHUT_OUT and first < len(problem.queries):
        refused += not planner.submit([first]).admitted
        first += 1
    running = problem.with_running(planner.deployment())
    solver = SqprMilp(running, Options(work_limit=NODES), seconds=seconds)
    return _submit(running, solver, range(first, min(first + count, len(problem.queries))), 1)


def at_load(problem: Problem, seconds: float, share: float, count: int) -> Spot:
    """The programme plans this share of the queries; the solver the next few, which are timed."""
    planner = Sqpr(problem, Options(work_limit=0, reuse="none"))
    first = round(share * len(problem.queries))
    for query in range(first):
        planner.submit([query])
    running = problem.with_running(planner.deployment())
    solver = SqprMilp(running, Options(work_limit=NODES), seconds=seconds)
    return _submit(running, solver, range(first, min(first + count, len(problem.queries))), 1)


def room_found(problem: Problem) -> tuple[int, int]:
    """After each refusal of the programme and its swaps: asked so often, room found so often."""
    planner = Sqpr(problem, Options(reuse="none"))
    asked = found = 0
    for query in range(len(problem.queries)):
        if not planner.submit([query]).admitted:
            solver = SqprMilp(problem, Options(work_limit=NODES), warm=False)
            solver.placing = planner.placing
            solver.limits = Limits(NODES, 1.0, ROOM_SECONDS)  # any solution will do
            asked += 1
            found += bool(solver.submit([query]).admitted)
    return asked, found


def _submit(problem: Problem, planner: OnlinePlanner, queries: range, batch: int) -> Course:
    seconds: list[float] = []
    admitted = clock = 0
    early_cpu = -1.0
    for first in range(queries.start, queries.stop, batch):
        asked = range(first, min(first + batch, queries.stop))
        began = time.process_time()
        decision = planner.submit(asked)
        seconds += [(time.process_time() - began) / len(asked)] * len(asked)
        admitted += len(decision.admitted)
        clock += decision.clock
        if early_cpu < 0 and asked.stop >= queries.start + EARLY * len(queries):
            used = cost_of(problem, planner.deployment()).cpu
            early_cpu = used / float(problem.hosts.cpu.sum())
    objections = verify(problem, planner.deployment())
    if objections:
        raise RuntimeError(f"the deployment can't run: {objections[0]}")
    late = float(np.percentile(seconds, 95))
    return Course(admitted, float(np.mean(seconds)), late, clock, early_cpu)
