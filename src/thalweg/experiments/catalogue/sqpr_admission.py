"""SQPR, figure 4(a): admitted against submitted queries, for rising work limits.

50 hosts, 500 base streams of 10 Mbps, 1,000 queries of 2-4-way joins, 0.1-0.5 % selective, Zipf 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import bound, filling, peak_memory_mb
from thalweg.experiments.sqpr.grid import Grid, measure
from thalweg.experiments.sqpr.planners import (
    HEURISTIC,
    KNOWING,
    PLAIN,
    REFERENCE,
    heuristic_planners,
)
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options

BOUND = "LP bound"
FREE = "sqpr, pairs and restraint"


@dataclass(frozen=True)
class Parameters:
    seeds: int = 20
    hosts: int = 50
    base_streams: int = 500
    queries: int = 1000
    host_mbps: tuple[float, ...] = (1000.0, 100.0)
    cpu_share: float = 0.75  # of the CPU that all queries need with full reuse
    work_limits: tuple[int, ...] = (0, 300)
    every: int = 50  # submitted queries between two points of a curve

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, hosts=10, base_streams=100, queries=200, every=10, work_limits=(0, 30))


def run(parameters: Parameters, progress: Progress) -> Report:
    workloads = {
        _network(mbps): Workload(
            hosts=parameters.hosts,
            base_streams=parameters.base_streams,
            queries=parameters.queries,
            host_bps=mbps * MBPS,
            cpu_share=parameters.cpu_share,
        )
        for mbps in parameters.host_mbps
    }
    planners = {_sqpr(n): filling("sqpr", Options(work_limit=n)) for n in parameters.work_limits}
    most = parameters.work_limits[-1]
    planners |= {
        PLAIN: filling("sqpr", Options(work_limit=most, reuse="none")),
        FREE: filling("sqpr", Options(work_limit=most, reuse="pairs", restraint=True)),
        **heuristic_planners(),
        REFERENCE: filling("aggregate-host"),
    }
    grid = measure(parameters.seeds, workloads, {**planners, BOUND: bound}, progress)
    points = [float(x) for x in range(0, parameters.queries + 1, parameters.every)]
    return Report(
        "sqpr-admission",
        "Admitted against submitted queries (SQPR, figure 4a)",
        {**asdict(parameters), "seeds": grid.seeds},
        grid.rows("network", (HEURISTIC, REFERENCE)),
        goals=_goals(parameters, grid),
        beside=_beside(parameters, grid),
        details={"curves": _details(grid, points)},
        figures={
            f"{network.split()[0]}-mbps": curves(
                points,
                {planner: grid.curves(network, planner, points) for planner in grid.planners},
                across="submitted queries",
                up="admitted queries",
                title=f"{network}, mean and range of {grid.seeds} seeds",
            )
            for network in workloads
        },
    )


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    goals = []
    best = _sqpr(parameters.work_limits[-1])
    for network in grid.workloads:
        narrow = network.startswith("100 ")
        for mine, theirs in ((PLAIN, HEURISTIC), (best, KNOWING), (FREE, HEURISTIC)):
            ratios = grid.ratios(network, mine, theirs)
            name = f"{network}: {mine} over {theirs}"
            goals += [
                Goal(f"{name}, mean", mean(ratios), 1.2 if narrow else 1.0, "x"),
                Goal(f"{name}, least", min(ratios), 1.1 if narrow else 0.98, "x"),
            ]
        to_reference = grid.ratios(network, PLAIN, REFERENCE)
        goals.append(Goal(f"{network}: {PLAIN} over aggregate host", mean(to_reference), 0.95))
        median, late = (grid.milliseconds(network, best, q) for q in (50, 95))
        goals += [
            Goal(f"{network}: planning time, median", median, 3.0, "ms", at_least=False),
            Goal(f"{network}: planning time, p95", late, 100.0, "ms", at_least=False),
        ]
    return [*goals, Goal("peak memory", peak_memory_mb(), 400.0, "MB", at_least=False)]


def _beside(parameters: Parameters, grid: Grid) -> list[Beside]:
    best, least = (_sqpr(parameters.work_limits[i]) for i in (-1, 0))
    found = []
    for network in grid.workloads:
        alone = grid.ratio(network, PLAIN, HEURISTIC) - 1
        like = grid.ratio(network, best, KNOWING) - 1
        free = grid.ratio(network, FREE, HEURISTIC) - 1
        distance = grid.ratio(network, PLAIN, REFERENCE) - 1
        loses = (
            "where bandwidth is no limit, nothing is gained by spreading a query; the objective "
            "then saves traffic that nobody is short of, at the price of sub-joins that others "
            "could use, and fills the last CPU with large queries (sqpr-reuse takes it apart)"
        )
        found += [
            Beside(
                f"4(a), {network}",
                "SQPR admits more than the heuristic planner",
                f"{alone:+.1%} by the objective alone; {like:+.1%} where both have the forecast; "
                f"{free:+.1%} with rules that need none",
                loses if min(alone, like) < 0.01 else "",
            ),
            Beside(
                f"4(a), {network}",
                "less than 25 % below the optimistic bound",
                f"{distance:+.1%} against the aggregate host, by the objective alone",
                "the aggregate host fills in order of arrival and can be beaten; nobody beats the "
                "LP bound"
                if distance > 0
                else "",
            ),
        ]
        if best != least:
            gain = grid.ratio(network, best, least) - 1
            found.append(
                Beside(
                    f"4(a), {network}",
                    "a line each for limits of 5, 30 and 60 s (the text does not say how they "
                    "differ)",
                    f"{gain:+.1%} from no swaps to the largest limit; the solver's own limits are "
                    "on sqpr-milp",
                )
            )
    return found


def _details(grid: Grid, points: list[float]) -> list[dict[str, object]]:
    return [
        {"network": network, "planner": planner, "seed": seed, "submitted": x, "admitted": y}
        for (network, planner) in grid.fillings
        for seed, line in enumerate(grid.curves(network, planner, points))
        for x, y in zip(points, line, strict=True)
    ]


def _network(mbps: float) -> str:
    return f"{mbps:g} Mbps"


def _sqpr(work_limit: int) -> str:
    return f"sqpr, limit {work_limit}"
