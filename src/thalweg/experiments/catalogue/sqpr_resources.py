"""SQPR, figure 5(b): how admission grows with the resources of the hosts.

CPU grows in steps from a share of what all queries need; links are of 1 Gbps and of 10 Gbps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.sqpr.grid import Grid, measure
from thalweg.experiments.sqpr.planners import PLAIN, REFERENCE, SQPR, sqpr_planners
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3
    hosts: int = 50
    base_streams: int = 500
    queries: int = 1000
    cpu_shares: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.8)
    host_mbps: tuple[float, ...] = (100.0, 1000.0, 10000.0)
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            seeds=2,
            hosts=10,
            base_streams=100,
            queries=150,
            cpu_shares=(0.2, 0.5, 0.8),
            work_limit=30,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    workloads = {
        _label(mbps, share): Workload(
            hosts=parameters.hosts,
            base_streams=parameters.base_streams,
            queries=parameters.queries,
            host_bps=mbps * MBPS,
            cpu_share=share,
        )
        for mbps in parameters.host_mbps
        for share in parameters.cpu_shares
    }
    planners = sqpr_planners(Options(work_limit=parameters.work_limit))
    planners[REFERENCE] = filling("aggregate-host")
    grid = measure(parameters.seeds, workloads, planners, progress)

    def line(mbps: float, planner: str) -> list[list[float]]:
        return grid.across([_label(mbps, share) for share in parameters.cpu_shares], planner)

    lines = {
        f"{planner}, {mbps:g} Mbps": line(mbps, planner)
        for mbps in parameters.host_mbps
        for planner in (SQPR, PLAIN)
    }
    lines[REFERENCE] = line(parameters.host_mbps[-1], REFERENCE)
    return Report(
        "sqpr-resources",
        "Admitted queries by the resources of hosts (SQPR, figure 5b)",
        {**asdict(parameters), "seeds": grid.seeds},
        grid.rows("hosts", (REFERENCE,)),
        goals=_goals(parameters, grid),
        beside=[_beside(parameters, grid, planner) for planner in (SQPR, PLAIN)],
        figures={
            "resources": curves(
                [100 * share for share in parameters.cpu_shares],
                lines,
                across="CPU of all hosts, % of what all queries need with full reuse",
                up="admitted queries",
                title=f"{parameters.hosts} hosts, {grid.seeds} seeds",
            )
        },
    )


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    return [
        Goal(
            f"{_label(mbps, share)}: {PLAIN} over aggregate host",
            grid.ratio(_label(mbps, share), PLAIN, REFERENCE),
            0.95,
        )
        for mbps in parameters.host_mbps
        for share in parameters.cpu_shares
    ]


def _beside(parameters: Parameters, grid: Grid, planner: str) -> Beside:
    ratios = [
        grid.ratio(_label(mbps, share), planner, REFERENCE)
        for mbps in parameters.host_mbps
        if mbps >= 1000
        for share in parameters.cpu_shares
    ]
    return Beside(
        f"5(b), {planner}",
        "with more CPU and 10 Gbps, SQPR stays near the optimum: its model does not grow",
        f"{min(ratios):.2f} to {max(ratios):.2f} of the aggregate host from 1 Gbps on",
    )


def _label(mbps: float, share: float) -> str:
    return f"{mbps:g} Mbps, CPU {share:g}"
