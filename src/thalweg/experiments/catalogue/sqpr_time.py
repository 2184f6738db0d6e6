"""SQPR, figures 6(a) and 6(b): planning time of a query while the system is 75-95 % full.

6(a) by the number of hosts, 6(b) by the number of streams that queries join, on 50 hosts. Time is
that of one core. Every system is filled with enough queries to pass 95 % of its CPU.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import Filling
from thalweg.experiments.sqpr.grid import Grid, measure, usual_cpu
from thalweg.experiments.sqpr.planners import PLAIN, SQPR, sqpr_planners
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3
    hosts: tuple[int, ...] = (25, 50, 75, 100, 150)
    ways: tuple[int, ...] = (2, 3, 4, 5)
    ways_on_hosts: int = 50
    base_streams: int = 500
    queries_per_host: int = 22
    host_mbps: tuple[float, ...] = (1000.0, 100.0)
    from_share: float = 0.75
    to_share: float = 0.95
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            seeds=2, hosts=(10, 20), ways=(2, 4), ways_on_hosts=10, base_streams=100, work_limit=30
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    cpu = usual_cpu(Workload(base_streams=parameters.base_streams), parameters.seeds)

    def workload(hosts: int, mbps: float, ways: tuple[int, ...]) -> Workload:
        return Workload(
            hosts=hosts,
            base_streams=parameters.base_streams,
            queries=hosts * parameters.queries_per_host,
            host_bps=mbps * MBPS,
            ways=ways,
            cpu=cpu,
        )

    workloads = {}
    for mbps in parameters.host_mbps:
        for hosts in parameters.hosts:
            workloads[_by_hosts(mbps, hosts)] = workload(hosts, mbps, (2, 3, 4))
        for ways in parameters.ways:
            workloads[_by_ways(mbps, ways)] = workload(parameters.ways_on_hosts, mbps, (ways,))
    options = Options(work_limit=parameters.work_limit)
    planners = sqpr_planners(options, note_load=True)
    grid = measure(parameters.seeds, workloads, planners, progress)
    rows = [_row(parameters, grid, n, p) for n in grid.workloads for p in (SQPR, PLAIN)]
    return Report(
        "sqpr-time",
        "Planning time at 75-95 % load (SQPR, figures 6a and 6b)",
        {**asdict(parameters), "seeds": grid.seeds, "cpu of a host": cpu},
        rows,
        goals=_goals(parameters, grid),
        beside=_beside(parameters, grid),
        figures={
            "hosts": curves(
                parameters.hosts,
                {
                    f"{mbps:g} Mbps": _means(
                        parameters, grid, [_by_hosts(mbps, h) for h in parameters.hosts]
                    )
                    for mbps in parameters.host_mbps
                },
                across="hosts",
                up="mean planning time, ms",
                title=f"6(a): 2-4-way joins, {grid.seeds} seeds",
            ),
            "ways": curves(
                parameters.ways,
                {
                    f"{mbps:g} Mbps": _means(
                        parameters, grid, [_by_ways(mbps, w) for w in parameters.ways]
                    )
                    for mbps in parameters.host_mbps
                },
                across="streams joined by a query",
                up="mean planning time, ms",
                title=f"6(b): {parameters.ways_on_hosts} hosts, {grid.seeds} seeds",
            ),
        },
    )


def _loaded_ms(parameters: Parameters, filled: Filling) -> list[float]:
    """Times of the submissions that found the system in the range; of all, if none did."""
    share = filled.cpu_share
    loaded = (share >= parameters.from_share) & (share <= parameters.to_share)
    times = filled.seconds[loaded] if loaded.any() else filled.seconds
    return [1000 * s for s in times.tolist()]


def _means(parameters: Parameters, grid: Grid, names: list[str]) -> list[list[float]]:
    by_workload = [
        [float(np.mean(_loaded_ms(parameters, f))) for f in grid.fillings[name, SQPR]]
        for name in names
    ]
    return [list(line) for line in zip(*by_workload, strict=True)]


def _row(parameters: Parameters, grid: Grid, name: str, planner: str = SQPR) -> dict[str, Any]:
    times = [ms for f in grid.fillings[name, planner] for ms in _loaded_ms(parameters, f)]
    fullest = max(float(f.cpu_share.max()) for f in grid.fillings[name, planner])
    return {
        "system": name,
        "planner": planner,
        "submissions at this load": len(times),
        "mean ms": float(np.mean(times)),
        "median ms": float(np.median(times)),
        "p95 ms": float(np.percentile(times, 95)),
        "longest ms": max(times),
        "CPU in use at the end, %": round(100 * fullest, 1),
    }


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    goals = []
    for mbps in parameters.host_mbps:
        for hosts in parameters.hosts:
            if hosts in (50, 150):
                name = _by_hosts(mbps, hosts)
                median, late = (grid.milliseconds(name, SQPR, q) for q in (50, 95))
                goals += [
                    Goal(f"{name}, all queries: median", median, 3.0, "ms", at_least=False),
                    Goal(f"{name}, all queries: p95", late, 100.0, "ms", at_least=False),
                ]
    return goals


def _beside(parameters: Parameters, grid: Grid) -> list[Beside]:
    found = []
    for mbps in parameters.host_mbps:
        by_hosts = [_row(parameters, grid, _by_hosts(mbps, h))["mean ms"] for h in parameters.hosts]
        by_ways = [_row(parameters, grid, _by_ways(mbps, w))["mean ms"] for w in parameters.ways]
        found += [
            Beside(
                f"6(a), {mbps:g} Mbps",
                "up to 100 hosts within 100 s, more hosts take significantly longer",
                ", ".join(
                    f"{h} hosts {ms / 1000:.2g} s"
                    for h, ms in zip(parameters.hosts, by_hosts, strict=True)
                ),
                "hosts are one vector to the programme: as many passes over arrays, whatever their "
                "length (Algorithm 1's own model: sqpr-milp)",
            ),
            Beside(
                f"6(b), {mbps:g} Mbps",
                "complex queries take longer, but the number of hosts matters more",
                ", ".join(
                    f"{w}-way {ms / 1000:.2g} s"
                    for w, ms in zip(parameters.ways, by_ways, strict=True)
                ),
                "the other way round: a join of n streams has 2^n sub-joins and 3^n ways to make "
                "them, each a pass over arrays, and hosts cost next to nothing; where links are "
                "short, means are of swaps that are tried in vain (medians are not)",
            ),
        ]
    return found


def _by_hosts(mbps: float, hosts: int) -> str:
    return f"{hosts} hosts, {mbps:g} Mbps"


def _by_ways(mbps: float, ways: int) -> str:
    return f"{ways}-way joins, {mbps:g} Mbps"
