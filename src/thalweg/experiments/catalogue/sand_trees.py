"""SAND, figures 9 and 10: bandwidth and stretch by the shape of trees, as the bound is relaxed.

In-Network on binary trees, on deeper ones, and on wider ones.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Progress, Report
from thalweg.experiments.sand.measuring import Table, in_network_tree, measure
from thalweg.experiments.sand.sampling import Case, Sample, sampled
from thalweg.experiments.sand.scenes import Scene, bounded
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CONFIGURATIONS

USUAL, DEEPER, WIDER = "binary", "deeper", "wider"


@dataclass(frozen=True)
class Parameters(Sample):
    places: str = "uniform"
    bounds: tuple[float, ...] = (1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)  # × direct
    depth: int = 4  # of binary trees, and of the wider ones
    deeper: int = 6
    wider: int = 3  # inputs of an operator

    def __post_init__(self) -> None:
        if self.places not in CONFIGURATIONS:
            raise ValueError(f"places are {', '.join(CONFIGURATIONS)}, not {self.places}")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, trees=10, bounds=(1.0, 1.25, 2.0, 3.0, 4.0))


def run(parameters: Parameters, progress: Progress) -> Report:
    shapes = {
        USUAL: Shape(depths=(parameters.depth,)),
        DEEPER: Shape(depths=(parameters.deeper,)),
        WIDER: Shape(depths=(parameters.depth,), fanout=parameters.wider),
    }
    places = CONFIGURATIONS[parameters.places]
    cases = [Case((name,), places, shape) for name, shape in shapes.items()]
    place_tree = in_network_tree(parameters.k)

    def measure_tree(scene: Scene, case: tuple[str, ...], tree: Tree, table: Table) -> None:
        for multiple in parameters.bounds:
            one = bounded(tree, multiple, scene.latency_ms)
            table.add((*case, f"{multiple:g}"), scene.seed, measure(one, scene.ways, place_tree))

    table, parameters = sampled(parameters, cases, measure_tree, progress)
    return Report(
        "sand-trees",
        "Bandwidth and stretch by the shape of trees (SAND, figures 9 and 10)",
        asdict(parameters),
        [_row(table, case) for case in table.cells],
        beside=_beside(parameters, table),
        figures={
            "bandwidth": _curves(parameters, table, "ratio", "bandwidth, of the baseline's"),
            "stretch": _curves(parameters, table, "stretch", "stretch of the longest way"),
        },
    )


def _row(table: Table, case: tuple[str, ...]) -> dict[str, Any]:
    return {
        "trees": case[0],
        "bound, × direct": float(case[1]),
        "number": table.count(case),
        "bandwidth ratio": table.mean(case, "ratio"),
        "stretch": table.mean(case, "stretch"),
    }


def _curves(parameters: Parameters, table: Table, what: str, up: str) -> Draw:
    return curves(
        parameters.bounds,
        {
            name: table.lines([(name, f"{m:g}") for m in parameters.bounds], what)
            for name in (USUAL, DEEPER, WIDER)
        },
        across="bound, in longest direct delays",
        up=up,
        title=f"{parameters.places}, mean and range of {parameters.seeds} topologies",
    )


def _beside(parameters: Parameters, table: Table) -> list[Beside]:
    def line(name: str, what: str) -> list[float]:
        return [table.mean((name, f"{m:g}"), what) for m in parameters.bounds]

    ratio = {name: line(name, "ratio") for name in (USUAL, DEEPER, WIDER)}
    stretch = {name: line(name, "stretch") for name in (USUAL, DEEPER, WIDER)}
    ends = ", ".join(
        f"{name} {values[0]:.2f} to {values[-1]:.2f}" for name, values in ratio.items()
    )
    long = ", ".join(f"{name} {v[0]:.2f} to {v[-1]:.2f}" for name, v in stretch.items())
    falls = all(np.all(np.diff(values) < 0.01) for values in ratio.values())
    rises = all(np.all(np.diff(values) > -0.01) for values in stretch.values())
    deeper, wider = ratio[DEEPER][-1] < ratio[USUAL][-1], ratio[WIDER][-1] > ratio[USUAL][-1]
    lengthens = {name: stretch[name][-1] > stretch[USUAL][-1] for name in (DEEPER, WIDER)}
    offs = ", ".join(
        f"{name} at {_tail_off(parameters.bounds, values):g}" for name, values in stretch.items()
    )
    return [
        Beside(
            "9",
            "with a looser bound the ratio falls, then levels off",
            f"{'yes' if falls else 'not everywhere'}: {ends}",
        ),
        Beside(
            "9",
            "deeper trees have lower ratios",
            f"{'yes' if deeper else 'no'} ({ratio[DEEPER][-1]:.2f} against {ratio[USUAL][-1]:.2f})",
        ),
        Beside(
            "9",
            "wider trees have higher ratios",
            f"{'yes' if wider else 'no'} ({ratio[WIDER][-1]:.2f} against {ratio[USUAL][-1]:.2f})",
        ),
        Beside(
            "10",
            "with a looser bound the stretch rises, then levels off",
            f"{'yes' if rises else 'not everywhere'}: {long}",
        ),
        Beside(
            "10",
            "deeper and wider trees have more stretch, and level off later",
            f"deeper: {'yes' if lengthens[DEEPER] else 'no'}, "
            f"wider: {'yes' if lengthens[WIDER] else 'no'}; within 2 % of their last value: {offs}",
            ""
            if all(lengthens.values())
            else "the source sees the number of operators as the cause; here it is their number on "
            "a way, which more inputs don't raise",
        ),
    ]


def _tail_off(bounds: tuple[float, ...], values: list[float]) -> float:
    """The first bound from which on nothing changes by more than 2 %."""
    close = [abs(value / values[-1] - 1) <= 0.02 for value in values]
    return next(b for i, b in enumerate(bounds) if all(close[i:]))
