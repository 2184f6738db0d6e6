"""A planner fed with a problem's queries in order of arrival, and everything noted on the way.

A deployment that `verify` objects to ends the experiment: its figures would mean nothing.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.placement.aggregate_host import aggregated
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.lp_bound import admitted_at_most
from thalweg.placement.problem import Problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import OnlinePlanner, Options
from thalweg.placement.verify import verify

Floats = npt.NDArray[np.float64]
MakePlanner = Callable[[Problem, Options], OnlinePlanner]
Tell = Callable[[float], None]  # hears which part is done


@dataclass(frozen=True)
class Filling:
    """What became of each submission; a submission is one query, or a batch."""

    submitted: Floats  # after each submission
    admitted: Floats
    seconds: Floats  # of CPU that the submission took: others at work don't count
    cpu_share: Floats  # of all hosts' CPU, in use before the submission, where it was noted
    deployment: Deployment | None = None

    def admitted_after(self, submitted: float) -> float:
        before = int(np.searchsorted(self.submitted, submitted, side="right"))
        return float(self.admitted[before - 1]) if before else 0.0

    @property
    def admitted_in_all(self) -> float:
        return float(self.admitted[-1])


Fill = Callable[[Problem, Tell], Filling]


def filling(
    strategy: str | MakePlanner, options: Options | None = None, *, note_load: bool = False
) -> Fill:
    """Submits all queries of a problem, in batches as the options say.

    Noting the load takes longer than planning, so it is done only where it is asked for.
    """
    options = options or Options()

    def fill(problem: Problem, tell: Tell) -> Filling:
        planner = _planner(strategy)(problem, options)
        columns: tuple[list[float], ...] = ([], [], [], [])
        admitted, share = 0, 0.0
        for first in range(0, len(problem.queries), options.batch):
            batch = range(first, min(first + options.batch, len(problem.queries)))
            began = time.process_time()
            decision = planner.submit(batch)
            seconds = time.process_time() - began
            admitted += len(decision.admitted)
            for column, value in zip(columns, (batch.stop, admitted, seconds, share), strict=True):
                column.append(value)
            if note_load and decision.admitted:
                share = cpu_share(problem, planner.deployment())
            tell(batch.stop / len(problem.queries))
        deployed = planner.deployment()
        _judge(str(strategy), problem, deployed, admitted)
        submitted, taken, seconds_taken, shares = (np.array(column) for column in columns)
        return Filling(submitted, taken, seconds_taken, shares, deployed)

    return fill


def bound(problem: Problem, tell: Tell) -> Filling:
    """What no deployment exceeds: the LP relaxation, drawn like a planner."""
    submitted = np.arange(1.0, len(problem.queries) + 1)
    most = admitted_at_most(problem)
    nothing = np.zeros(len(submitted))
    return Filling(submitted, np.minimum(submitted, most), nothing, nothing)


def _judge(strategy: str, problem: Problem, deployed: Deployment, admitted: int) -> None:
    judged = aggregated(problem) if strategy == "aggregate-host" else problem
    objections = verify(judged, deployed)
    if objections:
        raise RuntimeError(f"{strategy} gave a deployment that can't run: {objections[0]}")
    if deployed.admitted != admitted:
        raise RuntimeError(f"{strategy} dropped {admitted - deployed.admitted} admitted queries")


def _planner(strategy: str | MakePlanner) -> MakePlanner:
    if not isinstance(strategy, str):
        return strategy
    found = find_strategy(strategy).online
    if found is None:
        raise ValueError(f"{strategy} does not take queries one by one")
    return found


def cpu_share(problem: Problem, deployed: Deployment) -> float:
    """Of all CPU together."""
    used = float(problem.operators.cpu[deployed.runs[:, 1]].sum())
    return used / float(problem.hosts.cpu.sum())


def host_loads(problem: Problem, deployed: Deployment) -> tuple[Floats, Floats]:
    """Of each host, the share of its CPU in use, and what it sends and receives."""
    load = load_of(problem, deployed)
    return load.cpu / problem.hosts.cpu, load.out_bps + load.in_bps


def peak_memory_mb() -> float:
    """Of this process since it began."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
