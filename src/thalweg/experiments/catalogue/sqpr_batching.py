"""SQPR, figure 4(b): what planning queries in batches does to admission.

The workload of figure 4(a). A batch of n has n times the work limit of one query, as in the source.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from thalweg.experiments.report import Beside, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.sqpr.filling import filling
from thalweg.experiments.sqpr.grid import Grid, measure
from thalweg.placement.sqpr.workload import MBPS, Workload
from thalweg.placement.strategy import Options

PLAIN = "no forecast"


@dataclass(frozen=True)
class Parameters:
    seeds: int = 5
    hosts: int = 50
    base_streams: int = 500
    queries: int = 1000
    host_mbps: tuple[float, ...] = (1000.0, 100.0)
    batches: tuple[int, ...] = (1, 2, 5, 10, 50)
    work_limit: int = 300  # for each query
    every: int = 50

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            seeds=2,
            hosts=10,
            base_streams=100,
            queries=200,
            batches=(1, 5, 20),
            work_limit=30,
            every=20,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    workloads = {
        f"{mbps:g} Mbps": Workload(
            hosts=parameters.hosts,
            base_streams=parameters.base_streams,
            queries=parameters.queries,
            host_bps=mbps * MBPS,
        )
        for mbps in parameters.host_mbps
    }
    limit = parameters.work_limit
    planners = {
        _batch(n, note): filling("sqpr", Options(work_limit=limit, batch=n, reuse=reuse))
        for note, reuse in (("", "forecast"), (PLAIN, "none"))
        for n in parameters.batches
    }
    grid = measure(parameters.seeds, workloads, planners, progress)
    points = [float(x) for x in range(0, parameters.queries + 1, parameters.every)]
    return Report(
        "sqpr-batching",
        "Queries planned in batches (SQPR, figure 4b)",
        {**asdict(parameters), "seeds": grid.seeds},
        grid.rows("network", (_batch(parameters.batches[0]),)),
        beside=[
            _beside(parameters, grid, network, note)
            for network in grid.workloads
            for note in ("", PLAIN)
        ],
        figures={
            f"{network.split()[0]}-mbps": curves(
                points,
                {planner: grid.curves(network, planner, points) for planner in grid.planners},
                across="submitted queries",
                up="admitted queries",
                title=f"{network}, {grid.seeds} seeds",
            )
            for network in workloads
        },
    )


def _beside(parameters: Parameters, grid: Grid, network: str, note: str) -> Beside:
    one, many = _batch(parameters.batches[0], note), _batch(parameters.batches[-1], note)
    change = grid.ratio(network, many, one) - 1
    return Beside(
        f"4(b), {network}",
        "larger batches admit fewer queries: the problems get too hard for their time",
        f"{change:+.1%} from {one} to {many}",
        ""
        if change < -0.01
        else "a batch is not one large programme here: its queries are planned one after another, "
        "whichever needs least first, so that they do not get harder (as one model: "
        "sqpr-milp)",
    )


def _batch(size: int, note: str = "") -> str:
    return f"batches of {size}" + (f", {note}" if note else "")
