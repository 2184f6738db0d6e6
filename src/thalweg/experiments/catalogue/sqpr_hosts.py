"""SQPR, figure 5(a): how admission grows with the number of hosts.

A host has the CPU that figure 4(a) gives it, and queries come in proportion to the hosts, so that
systems of all sizes fill up.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.sqpr.grid import Grid, measure, usual_cpu
from thalweg.experiments.sqpr.planners import (
    HEURISTIC,
    PLAIN,
    REFERENCE,
    SQPR,
    heuristic_planners,
    sqpr_planners,
)
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3
    hosts: tuple[int, ...] = (10, 25, 50, 100, 150)
    queries_per_host: int = 24
    base_streams: int = 500
    host_mbps: float = 100.0
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, hosts=(5, 10, 20), base_streams=100, work_limit=30)


def run(parameters: Parameters, progress: Progress) -> Report:
    usual = Workload(base_streams=parameters.base_streams)
    cpu = usual_cpu(usual, parameters.seeds)
    workloads = {
        _label(hosts): Workload(
            hosts=hosts,
            base_streams=parameters.base_streams,
            queries=hosts * parameters.queries_per_host,
            host_bps=parameters.host_mbps * MBPS,
            cpu=cpu,
        )
        for hosts in parameters.hosts
    }
    planners = sqpr_planners(Options(work_limit=parameters.work_limit))
    planners |= {**heuristic_planners(), REFERENCE: filling("aggregate-host")}
    grid = measure(parameters.seeds, workloads, planners, progress)
    lines = {planner: grid.across(grid.workloads, planner) for planner in grid.planners}
    return Report(
        "sqpr-hosts",
        "Admitted queries by the number of hosts (SQPR, figure 5a)",
        {**asdict(parameters), "seeds": grid.seeds, "cpu of a host": cpu},
        grid.rows("hosts", (HEURISTIC, REFERENCE)),
        goals=_goals(parameters, grid),
        beside=_beside(parameters, grid),
        figures={
            "hosts": curves(
                parameters.hosts,
                lines,
                across="hosts",
                up="admitted queries",
                title=f"{parameters.host_mbps:g} Mbps, {grid.seeds} seeds",
            )
        },
    )


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    goals = [
        Goal(
            f"{hosts} hosts: {PLAIN} over heuristic",
            grid.ratio(_label(hosts), PLAIN, HEURISTIC),
            1.1,
            "x",
        )
        for hosts in parameters.hosts
    ]
    for hosts in parameters.hosts:
        if hosts in (50, 150):
            median, late = (grid.milliseconds(_label(hosts), SQPR, q) for q in (50, 95))
            goals += [
                Goal(f"{hosts} hosts: planning time, median", median, 3.0, "ms", at_least=False),
                Goal(f"{hosts} hosts: planning time, p95", late, 100.0, "ms", at_least=False),
            ]
    return goals


def _beside(parameters: Parameters, grid: Grid) -> list[Beside]:
    few, many = parameters.hosts[0], parameters.hosts[-1]
    admitted = [grid.mean_admitted(_label(h), PLAIN) for h in (few, many)]
    growth = (admitted[1] / admitted[0]) / (many / few)
    distances = [grid.ratio(_label(h), PLAIN, REFERENCE) - 1 for h in (few, many)]
    return [
        Beside(
            "5(a)",
            "admission grows faster than the number of hosts",
            f"{PLAIN}: {admitted[0]:.0f} queries on {few} hosts, {admitted[1]:.0f} on {many}: "
            f"{growth:.2f} times as many for each host",
        ),
        Beside(
            "5(a)",
            "the distance to the optimistic bound widens with the number of hosts",
            f"{distances[0]:+.1%} against the aggregate host on {few} hosts, "
            f"{distances[1]:+.1%} on {many}",
            ""
            if distances[1] < distances[0] - 0.02
            else "the source puts it down to its solver, which runs out of time on large models; "
            "the programme has no model that grows",
        ),
    ]


def _label(hosts: int) -> str:
    return str(hosts)
