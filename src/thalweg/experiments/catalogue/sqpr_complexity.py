"""SQPR, figure 5(c): joins of more streams admit fewer queries.

All queries join the same number of streams. Hosts have the CPU that figure 4(a) gives them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.sqpr.grid import Grid, measure, usual_cpu
from thalweg.experiments.sqpr.planners import PLAIN, REFERENCE, SQPR, sqpr_planners
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3
    hosts: int = 50
    base_streams: int = 500
    queries: int = 1000
    ways: tuple[int, ...] = (2, 3, 4, 5)
    host_mbps: tuple[float, ...] = (1000.0, 100.0)
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, hosts=10, base_streams=100, queries=150, work_limit=30)


def run(parameters: Parameters, progress: Progress) -> Report:
    usual = Workload(
        hosts=parameters.hosts, base_streams=parameters.base_streams, queries=parameters.queries
    )
    cpu = usual_cpu(usual, parameters.seeds)
    workloads = {
        _label(mbps, ways): Workload(
            hosts=parameters.hosts,
            base_streams=parameters.base_streams,
            queries=parameters.queries,
            ways=(ways,),
            host_bps=mbps * MBPS,
            cpu=cpu,
        )
        for mbps in parameters.host_mbps
        for ways in parameters.ways
    }
    planners = sqpr_planners(Options(work_limit=parameters.work_limit))
    planners[REFERENCE] = filling("aggregate-host")
    grid = measure(parameters.seeds, workloads, planners, progress)

    def line(mbps: float, planner: str) -> list[list[float]]:
        return grid.across([_label(mbps, ways) for ways in parameters.ways], planner)

    lines = {
        f"{planner}, {mbps:g} Mbps": line(mbps, planner)
        for mbps in parameters.host_mbps
        for planner in (SQPR, PLAIN)
    }
    lines[REFERENCE] = line(parameters.host_mbps[0], REFERENCE)
    return Report(
        "sqpr-complexity",
        "Admitted queries by the number of streams they join (SQPR, figure 5c)",
        {**asdict(parameters), "seeds": grid.seeds, "cpu of a host": cpu},
        grid.rows("joins", (REFERENCE,)),
        goals=_goals(parameters, grid),
        beside=[
            _beside(parameters, grid, mbps, planner)
            for mbps in parameters.host_mbps
            for planner in (SQPR, PLAIN)
        ],
        figures={
            "ways": curves(
                parameters.ways,
                lines,
                across="streams joined by a query",
                up="admitted queries",
                title=f"{parameters.hosts} hosts, {grid.seeds} seeds",
            )
        },
    )


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    """A planner that can't spread a query misses these where bandwidth is short."""
    return [
        Goal(
            f"{_label(mbps, ways)}: {PLAIN} over aggregate host",
            grid.ratio(_label(mbps, ways), PLAIN, REFERENCE),
            0.9,
        )
        for mbps in parameters.host_mbps
        for ways in parameters.ways
    ]


def _beside(parameters: Parameters, grid: Grid, mbps: float, planner: str) -> Beside:
    few, many = parameters.ways[0], parameters.ways[-1]
    admitted = [grid.mean_admitted(_label(mbps, ways), planner) for ways in (few, many)]
    ratios = [grid.ratio(_label(mbps, ways), planner, REFERENCE) for ways in parameters.ways]
    return Beside(
        f"5(c), {mbps:g} Mbps, {planner}",
        "complex queries admit fewer; the share of the optimistic bound hardly depends on them",
        f"{admitted[0]:.0f} queries of {few} streams, {admitted[1]:.0f} of {many}; "
        f"{min(ratios):.2f} to {max(ratios):.2f} of the aggregate host",
    )


def _label(mbps: float, ways: int) -> str:
    return f"{mbps:g} Mbps, {ways}-way"
