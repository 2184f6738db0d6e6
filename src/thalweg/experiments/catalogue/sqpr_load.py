"""SQPR, figures 7(b) and 7(c): how evenly SQPR and SODA load CPU and network of the hosts.

The cluster of figure 7(a) after 50 queries, when there is room, and after 150, when it gets full.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.catalogue.sqpr_soda import EVEN_LOAD
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.cluster import cluster, cluster_problem
from thalweg.experiments.sqpr.figures import distributions
from thalweg.experiments.sqpr.filling import filling, host_loads
from thalweg.experiments.sqpr.grid import Grid, measure
from thalweg.experiments.sqpr.planners import PLAIN, SQPR, sqpr_planners
from thalweg.placement.strategy import Options

SODA = "soda"


@dataclass(frozen=True)
class Parameters:
    seeds: int = 20
    hosts: int = 15
    base_streams: int = 300
    submitted: tuple[int, ...] = (50, 150)
    epoch: int = 50
    joins_per_host: int = 15
    host_mbps: float = 10.0
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=3, work_limit=30)


def run(parameters: Parameters, progress: Progress) -> Report:
    workloads = {
        str(queries): cluster(
            parameters.hosts,
            parameters.base_streams,
            queries,
            parameters.joins_per_host,
            parameters.host_mbps,
        )
        for queries in parameters.submitted
    }
    limit = parameters.work_limit
    planners = {
        **sqpr_planners(Options(weights=EVEN_LOAD, work_limit=limit)),
        SODA: filling("soda", Options(weights=EVEN_LOAD, work_limit=limit, batch=parameters.epoch)),
    }
    grid = measure(parameters.seeds, workloads, planners, progress, cluster_problem)
    loads = {
        (submitted, planner): _loads(grid, workloads[submitted], submitted, planner)
        for submitted, planner in grid.fillings
    }
    return Report(
        "sqpr-load",
        "Distribution of CPU and network load (SQPR, figures 7b and 7c)",
        {**asdict(parameters), "seeds": grid.seeds},
        [_row(grid, *key, *found) for key, found in loads.items()],
        goals=_goals(parameters, loads),
        beside=_beside(parameters, loads),
        figures={
            "cpu": distributions(
                {f"{p}-{n}": (100 * cpu).tolist() for (n, p), (cpu, _) in loads.items()},
                across="CPU in use, %",
                title=f"7(b): hosts of {grid.seeds} seeds",
            ),
            "network": distributions(
                {f"{p}-{n}": (bps / 1e3).tolist() for (n, p), (_, bps) in loads.items()},
                across="sent and received, kbps",
                title=f"7(c): hosts of {grid.seeds} seeds",
            ),
        },
    )


Loads = tuple[Any, Any]


def _loads(grid: Grid, workload: Any, submitted: str, planner: str) -> Loads:
    """Of all hosts of all seeds."""
    found = []
    for seed, filled in enumerate(grid.fillings[submitted, planner]):
        assert filled.deployment is not None
        found.append(host_loads(cluster_problem(workload, seed), filled.deployment))
    return np.concatenate([cpu for cpu, _ in found]), np.concatenate([bps for _, bps in found])


def _row(grid: Grid, submitted: str, planner: str, cpu: Any, bps: Any) -> dict[str, Any]:
    return {
        "submitted": submitted,
        "planner": planner,
        "admitted": grid.mean_admitted(submitted, planner),
        "CPU %, mean": 100 * float(cpu.mean()),
        "CPU %, deviation": 100 * float(cpu.std()),
        "CPU %, busiest": 100 * float(cpu.max()),
        "kbps, mean": float(bps.mean()) / 1e3,
        "kbps, deviation": float(bps.std()) / 1e3,
    }


def _goals(parameters: Parameters, loads: dict[tuple[str, str], Loads]) -> list[Goal]:
    """A planner that packs hosts one after the other misses these."""
    goals = []
    for submitted, most in zip(map(str, parameters.submitted), (0.2, 0.1), strict=False):
        cpu, _ = loads[submitted, PLAIN]
        name = f"{submitted} queries: {PLAIN}, deviation of CPU over its mean"
        goals.append(Goal(name, float(cpu.std() / cpu.mean()), most, at_least=False))
    return goals


def _beside(parameters: Parameters, loads: dict[tuple[str, str], Loads]) -> list[Beside]:
    few, many = str(parameters.submitted[0]), str(parameters.submitted[-1])

    def spread(index: int, submitted: str, planner: str) -> str:
        values = loads[submitted, planner][index]
        return f"{values.std() / values.mean():.0%}"

    return [
        Beside(
            "7(b)",
            "both planners balance the CPU; near overload it is evenly used on all hosts",
            f"deviation from the mean: sqpr {spread(0, few, SQPR)} and {spread(0, many, SQPR)}, "
            f"soda {spread(0, few, SODA)} and {spread(0, many, SODA)} ({few} and {many} queries)",
        ),
        Beside(
            "7(c)",
            "both planners roughly balance the network",
            f"deviation from the mean: sqpr {spread(1, few, SQPR)} and {spread(1, many, SQPR)}, "
            f"soda {spread(1, few, SODA)} and {spread(1, many, SODA)}",
            "neither planner has the balance of the network among its objectives; it comes with "
            "the balance of CPU",
        ),
    ]
