"""SQPR, figure 4(c): how overlap between queries (fewer streams, steeper Zipf) helps admission.

Hosts have the CPU that figure 4(a) gives them, whatever the overlap: only so can overlap be seen.
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
    seeds: int = 5
    hosts: int = 50
    queries: int = 1000
    base_streams: tuple[int, ...] = (100, 500, 1000)
    zipf: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5)
    host_mbps: tuple[float, ...] = (1000.0, 100.0)
    usual_streams: int = 500  # with Zipf 1 they set the hosts' CPU
    work_limit: int = 300

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            seeds=2,
            hosts=10,
            queries=150,
            base_streams=(30, 100),
            usual_streams=100,
            zipf=(0.0, 1.0),
            work_limit=30,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    usual = Workload(
        hosts=parameters.hosts, base_streams=parameters.usual_streams, queries=parameters.queries
    )
    cpu = usual_cpu(usual, parameters.seeds)
    workloads = {
        _label(mbps, streams, zipf): Workload(
            hosts=parameters.hosts,
            base_streams=streams,
            queries=parameters.queries,
            host_bps=mbps * MBPS,
            zipf=zipf,
            cpu=cpu,
        )
        for mbps in parameters.host_mbps
        for streams in parameters.base_streams
        for zipf in parameters.zipf
    }
    planners = sqpr_planners(Options(work_limit=parameters.work_limit))
    planners[REFERENCE] = filling("aggregate-host")
    grid = measure(parameters.seeds, workloads, planners, progress)
    return Report(
        "sqpr-overlap",
        "Overlap between queries (SQPR, figure 4c)",
        {**asdict(parameters), "seeds": grid.seeds, "cpu of a host": cpu},
        grid.rows("workload", (REFERENCE,)),
        goals=_goals(parameters, grid),
        beside=_beside(parameters, grid),
        figures={
            f"{mbps:g}-mbps": curves(
                parameters.zipf,
                {
                    f"{streams} streams{note}": grid.across(
                        [_label(mbps, streams, zipf) for zipf in parameters.zipf], planner
                    )
                    for streams in parameters.base_streams
                    for planner, note in (
                        (SQPR, ""),
                        (PLAIN, ", no forecast"),
                        (REFERENCE, ", aggregate host"),
                    )
                },
                across="Zipf parameter",
                up="admitted queries",
                title=f"{mbps:g} Mbps, {grid.seeds} seeds",
            )
            for mbps in parameters.host_mbps
        },
    )


def _even_and_steep(
    parameters: Parameters, grid: Grid, mbps: float, streams: int
) -> tuple[float, float]:
    """What SQPR admits by its objective alone, with the least and with the most overlap."""
    ends = (parameters.zipf[0], parameters.zipf[-1])
    even, steep = (grid.mean_admitted(_label(mbps, streams, zipf), PLAIN) for zipf in ends)
    return even, steep


def _goals(parameters: Parameters, grid: Grid) -> list[Goal]:
    goals = []
    for mbps in parameters.host_mbps:
        for streams in parameters.base_streams:
            even, steep = _even_and_steep(parameters, grid, mbps, streams)
            ends = (parameters.zipf[0], parameters.zipf[-1])
            least, most = (
                grid.mean_admitted(_label(mbps, streams, zipf), REFERENCE) for zipf in ends
            )
            # What overlap gives one who wastes nothing; without reuse, nothing would come of it.
            name = f"{mbps:g} Mbps, {streams} streams: gain by overlap, of the aggregate host's"
            if most > 1.02 * least:
                goals.append(Goal(name, (steep - even) / (most - least), 0.75))
    return goals


def _beside(parameters: Parameters, grid: Grid) -> list[Beside]:
    found = []
    for mbps in parameters.host_mbps:
        told = []
        for streams in (parameters.base_streams[0], parameters.base_streams[-1]):
            even, steep = _even_and_steep(parameters, grid, mbps, streams)
            told.append(f"{streams} streams: {even:.0f} to {steep:.0f}")
        found.append(
            Beside(
                f"4(c), {mbps:g} Mbps",
                "more overlap (fewer streams, larger Zipf parameter), more admitted queries",
                f"from Zipf {parameters.zipf[0]:g} to {parameters.zipf[-1]:g}, " + "; ".join(told),
            )
        )
    return found


def _label(mbps: float, streams: int, zipf: float) -> str:
    return f"{mbps:g} Mbps, {streams} streams, Zipf {zipf:g}"
