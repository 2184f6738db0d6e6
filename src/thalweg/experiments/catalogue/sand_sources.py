"""SAND, figure 8: bandwidth as the sources of a cluster move apart.

The distance from the proxy stays at 0.4 of the diameter, the mean distance between sources grows up
to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sand.measuring import (
    EDGE,
    EDGE_PLUS,
    IN_NETWORK,
    Table,
    measure,
    usual,
)
from thalweg.experiments.sand.sampling import Case, Sample, sampled
from thalweg.experiments.sand.scenes import Scene, bounded
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CLUSTER, Configuration

NAMES = (EDGE, EDGE_PLUS, IN_NETWORK)


@dataclass(frozen=True)
class Parameters(Sample):
    depths: tuple[int, ...] = (3, 4, 5)  # of the trees, in equal parts
    asd: tuple[float, ...] = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)  # of the diameter
    tight: float = 1.2  # times the longest direct delay
    loose: float = 3.0
    tight_ms: float = 300.0  # the same for all trees, as in the source
    loose_ms: float = 1000.0

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, trees=15, asd=(0.1, 0.2, 0.3, 0.4))

    @property
    def bounds(self) -> dict[str, tuple[str, str]]:
        """By their kind, the tight and the loose one."""
        return {
            "a multiple": (f"{self.tight:g} × direct", f"{self.loose:g} × direct"),
            "ms": (f"{self.tight_ms:g} ms", f"{self.loose_ms:g} ms"),
        }


def run(parameters: Parameters, progress: Progress) -> Report:
    cases = [
        Case(
            (f"{asd:g}",), Configuration(f"ASD {asd:g}", CLUSTER.apd, asd), Shape(parameters.depths)
        )
        for asd in parameters.asd
    ]

    def measure_tree(scene: Scene, case: tuple[str, ...], tree: Tree, table: Table) -> None:
        for bound, one in _bounded(parameters, scene, tree):
            for name, place_tree in usual(parameters.k).items():
                measured = measure(one, scene.ways, place_tree)
                table.add((*case, bound, name), scene.seed, measured)

    table, parameters = sampled(parameters, cases, measure_tree, progress)
    return _report(parameters, table)


def _bounded(parameters: Parameters, scene: Scene, tree: Tree) -> Iterator[tuple[str, Tree]]:
    """A bound in ms that the farthest source breaks becomes the tree's own direct delay."""
    direct = direct_ms(tree, scene.latency_ms)
    for multiple in (parameters.tight, parameters.loose):
        yield f"{multiple:g} × direct", bounded(tree, multiple, scene.latency_ms)
    for bound_ms in (parameters.tight_ms, parameters.loose_ms):
        yield f"{bound_ms:g} ms", replace(tree, bound_ms=max(bound_ms, direct))


def _report(parameters: Parameters, table: Table) -> Report:
    bounds = [bound for pair in parameters.bounds.values() for bound in pair]
    return Report(
        "sand-sources",
        "Bandwidth as sources move apart (SAND, figure 8)",
        asdict(parameters),
        [_row(table, case) for case in table.cells],
        goals=[
            *(_goal(parameters, table, bound) for bound in bounds),
            _slope_goal(parameters, table),
        ],
        beside=_beside(parameters, table),
        notes=NOTES,
        figures={
            f"bandwidth-{kind.split()[-1]}": curves(
                parameters.asd,
                {
                    f"{name}, {bound}": table.lines(
                        [(f"{asd:g}", bound, name) for asd in parameters.asd], "ratio"
                    )
                    for bound in pair
                    for name in NAMES
                },
                across="mean distance between sources, of the diameter",
                up="bandwidth, of the baseline's",
                title=f"cluster, mean and range of {parameters.seeds} topologies",
            )
            for kind, pair in parameters.bounds.items()
        },
    )


def _row(table: Table, case: tuple[str, ...]) -> dict[str, Any]:
    asd, bound, name = case
    return {
        "ASD": float(asd),
        "bound": bound,
        "strategy": name,
        "trees": table.count(case),
        "bandwidth ratio": table.mean(case, "ratio"),
        "stretch": table.mean(case, "stretch"),
    }


def _goal(parameters: Parameters, table: Table, bound: str) -> Goal:
    """At every point: one that looks at no distances misses it."""
    ratios = [
        _mean(table, asd, bound, IN_NETWORK) / _mean(table, asd, bound, EDGE)
        for asd in parameters.asd
    ]
    return Goal(f"in-network over edge at {bound}, worst", max(ratios), 0.97, "x", at_least=False)


def _slope_goal(parameters: Parameters, table: Table) -> Goal:
    tight, loose = (
        _slope(parameters, table, bound, near=True) for bound in parameters.bounds["ms"]
    )
    upto = _near(parameters)[-1]
    name = f"slope up to ASD {upto:g} under the tight bound in ms, of the loose one's"
    return Goal(name, tight / loose, 1.25, "x")


def _mean(table: Table, asd: float, bound: str, name: str) -> float:
    return table.mean((f"{asd:g}", bound, name), "ratio")


def _near(parameters: Parameters) -> tuple[float, ...]:
    """The nearer half, where the baseline is still far."""
    return parameters.asd[: max(2, (len(parameters.asd) + 1) // 2)]


def _slope(parameters: Parameters, table: Table, bound: str, *, near: bool = False) -> float:
    at = _near(parameters) if near else parameters.asd
    return float(np.polyfit(at, [_mean(table, asd, bound, IN_NETWORK) for asd in at], 1)[0])


def _beside(parameters: Parameters, table: Table) -> list[Beside]:
    bounds = [bound for pair in parameters.bounds.values() for bound in pair]
    rising = all(
        np.all(np.diff([_mean(table, asd, bound, name) for asd in parameters.asd]) > -0.01)
        for bound in bounds
        for name in NAMES
    )
    found = [
        Beside(
            "8",
            "the ratio rises as sources move apart",
            "yes, for all three and all bounds" if rising else "not everywhere",
        )
    ]
    for kind, (tight, loose) in parameters.bounds.items():
        slopes = [_slope(parameters, table, bound) for bound in (tight, loose)]
        first = [_slope(parameters, table, bound, near=True) for bound in (tight, loose)]
        gap = [
            _mean(table, asd, tight, IN_NETWORK) - _mean(table, asd, loose, IN_NETWORK)
            for asd in parameters.asd
        ]
        found.append(
            Beside(
                f"8, {kind}",
                "it rises far faster under a tight bound, towards the baseline",
                f"slope {slopes[0]:.2f} ({tight}) against {slopes[1]:.2f} ({loose}) for "
                f"in-network, {first[0]:.2f} against {first[1]:.2f} up to ASD "
                f"{_near(parameters)[-1]:g}; tight less loose from {gap[0]:+.3f} to {gap[-1]:+.3f}",
                "a bound in ms gets tighter as sources move apart, since their direct delays grow; "
                "a multiple of the direct delay does not"
                if kind != "ms"
                else "as in the source, until the tight line comes near the baseline and bends",
            )
        )
    return found


NOTES = (
    "A tree whose farthest source is farther from the proxy than a bound in ms is given its own "
    "direct delay as its bound, so that all trees count at every distance; what it can still "
    "gain is little.",
)
