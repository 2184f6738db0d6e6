"""Every planner on every workload, for every seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.experiments.report import Progress
from thalweg.experiments.sqpr.filling import Fill, Filling
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.workload import Workload, make_problem

MakeProblem = Callable[[Workload, int], Problem]


@dataclass
class Grid:
    """Fillings by (workload, planner), one for each seed."""

    fillings: dict[tuple[str, str], list[Filling]] = field(default_factory=dict)

    def admitted(self, workload: str, planner: str) -> list[float]:
        return [f.admitted_in_all for f in self.fillings[workload, planner]]

    def curves(self, workload: str, planner: str, points: Sequence[float]) -> list[list[float]]:
        return [[f.admitted_after(x) for x in points] for f in self.fillings[workload, planner]]

    def mean_admitted(self, workload: str, planner: str) -> float:
        return float(np.mean(self.admitted(workload, planner)))

    def across(self, workloads: Sequence[str], planner: str) -> list[list[float]]:
        """Of each seed, what the planner admits in one workload after the other."""
        columns = [self.admitted(workload, planner) for workload in workloads]
        return [list(line) for line in zip(*columns, strict=True)]

    def ratios(self, workload: str, planner: str, other: str) -> list[float]:
        """Seed by seed, what one admits for each query that the other does."""
        pairs = zip(self.admitted(workload, planner), self.admitted(workload, other), strict=True)
        return [mine / theirs for mine, theirs in pairs]

    def ratio(self, workload: str, planner: str, other: str) -> float:
        return float(np.mean(self.ratios(workload, planner, other)))

    def milliseconds(self, workload: str, planner: str, percentile: float) -> float:
        """Of CPU, for one submission."""
        return 1000 * float(np.percentile(self.seconds(workload, planner), percentile))

    def seconds(self, workload: str, planner: str) -> list[float]:
        return [s for f in self.fillings[workload, planner] for s in f.seconds.tolist()]

    @property
    def seeds(self) -> int:
        return min(len(filled) for filled in self.fillings.values())

    @property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(workload for workload, _ in self.fillings))

    @property
    def planners(self) -> list[str]:
        return list(dict.fromkeys(planner for _, planner in self.fillings))

    def rows(self, heading: str, against: Sequence[str] = ()) -> list[dict[str, Any]]:
        """A line for each workload and planner, with ratios to the planners named."""
        found = []
        for workload, planner in self.fillings:
            admitted = self.admitted(workload, planner)
            row: dict[str, Any] = {heading: workload, "planner": planner}
            row |= {"admitted": float(np.mean(admitted)), "least": min(admitted)}
            row["most"] = max(admitted)
            for other in against:
                if (workload, other) in self.fillings:
                    row[f"of {other}"] = self.ratio(workload, planner, other)
            row["median ms"] = self.milliseconds(workload, planner, 50)
            row["p95 ms"] = self.milliseconds(workload, planner, 95)
            found.append(row)
        return found


def measure(
    seeds: int,
    workloads: Mapping[str, Workload],
    planners: Mapping[str, Fill],
    progress: Progress,
    problem_of: MakeProblem = make_problem,
) -> Grid:
    """Interrupted (Ctrl-C), it gives the seeds that are complete, if there are any."""
    grid = Grid()
    for seed in range(seeds):
        try:
            of_seed = _measure_seed(seed, seeds, workloads, planners, progress, problem_of)
        except KeyboardInterrupt:
            if seed == 0:
                raise
            break
        for key, filled in of_seed.items():
            grid.fillings.setdefault(key, []).append(filled)
    return grid


def _measure_seed(
    seed: int,
    seeds: int,
    workloads: Mapping[str, Workload],
    planners: Mapping[str, Fill],
    progress: Progress,
    problem_of: MakeProblem,
) -> dict[tuple[str, str], Filling]:
    found: dict[tuple[str, str], Filling] = {}
    steps = len(workloads) * len(planners)
    for workload, described in workloads.items():
        problem = problem_of(described, seed)
        for planner, fill in planners.items():
            told = f"seed {seed}, {workload}, {planner}"

            def tell(part: float, told: str = told, done: int = len(found)) -> None:
                progress(told, (seed + (done + part) / steps) / seeds)

            tell(0.0)
            found[workload, planner] = fill(problem, tell)
    return found


def usual_cpu(workload: Workload, seeds: int) -> float:
    """What a host of this workload has, on average: experiments that vary the workload keep it."""
    return float(np.mean([make_problem(workload, seed).hosts.cpu[0] for seed in range(seeds)]))
