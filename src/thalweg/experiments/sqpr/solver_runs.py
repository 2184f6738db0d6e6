"""Runs of Algorithm 1's solver: a system filled, queries from saturation on, and room it finds."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from thalweg.placement.milp.solving import Limits
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr_milp import SqprMilp
from thalweg.placement.strategy import OnlinePlanner, Options
from thalweg.placement.verify import verify

NODES = 1_000_000  # no limit: seconds are the source's
SHUT_OUT = 3  # refusals: from the third on, a system counts as saturated
ROOM_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Course:
    admitted: int
    mean_s: float  # CPU of one core, for a query
    p95_s: float
    clock: int  # searches that the clock ended


Spot = Course  # of queries from saturation on


def fill(
    problem: Problem,
    *,
    strategy: str,
    work_limit: int = NODES,
    seconds: float = 60.0,
    batch: int = 1,
) -> Course:
    options = Options(work_limit=work_limit, reuse="none", batch=batch)
    planner: OnlinePlanner = (
        Sqpr(problem, options)
        if strategy == "sqpr"
        else SqprMilp(problem, options, seconds=seconds)
    )
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
    for first in range(queries.start, queries.stop, batch):
        asked = range(first, min(first + batch, queries.stop))
        began = time.process_time()
        decision = planner.submit(asked)
        seconds += [(time.process_time() - began) / len(asked)] * len(asked)
        admitted += len(decision.admitted)
        clock += decision.clock
    objections = verify(problem, planner.deployment())
    if objections:
        raise RuntimeError(f"the deployment can't run: {objections[0]}")
    return Course(admitted, float(np.mean(seconds)), float(np.percentile(seconds, 95)), clock)
