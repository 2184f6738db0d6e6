"""SAND, figures 11 and 12: bandwidth, stretch and where operators stand, by selectivity.

In-Network; selectivities are drawn from 0 to the bound that is varied.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Progress, Report
from thalweg.experiments.sand.figures import bars
from thalweg.experiments.sand.measuring import Table, in_network_tree, measure
from thalweg.experiments.sand.sampling import Case, Sample, sampled
from thalweg.experiments.sand.scenes import Scene, bounded
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CONFIGURATIONS

PLACES = ("cluster", "star")


@dataclass(frozen=True)
class Parameters(Sample):
    depths: tuple[int, ...] = (3, 4, 5)  # of the trees, in equal parts
    selectivities: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # upper bounds
    bound: float = 3.0  # times the longest direct delay

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, trees=25)


def run(parameters: Parameters, progress: Progress) -> Report:
    place_tree = in_network_tree(parameters.k)
    cases = [
        Case((places, f"{most:g}"), CONFIGURATIONS[places], shape)
        for places in PLACES
        for most in parameters.selectivities
        for shape in (Shape(parameters.depths, selectivity=most),)
    ]

    def measure_tree(scene: Scene, case: tuple[str, ...], tree: Tree, table: Table) -> None:
        one = bounded(tree, parameters.bound, scene.latency_ms)
        table.add(case, scene.seed, measure(one, scene.ways, place_tree, scene.sites))

    table, parameters = sampled(parameters, cases, measure_tree, progress)
    return Report(
        "sand-selectivity",
        "Bandwidth, stretch and operators' places by selectivity (SAND, figures 11 and 12)",
        asdict(parameters),
        [_row(table, case) for case in table.cells],
        beside=_beside(parameters, table),
        figures={
            "bandwidth": _curves(parameters, table, "ratio", "bandwidth, of the baseline's"),
            "stretch": _curves(parameters, table, "stretch", "stretch of the longest way"),
            "operators": _bars(parameters, table),
        },
    )


def _row(table: Table, case: tuple[str, ...]) -> dict[str, Any]:
    shares = {
        told: table.mean(case, what)
        for told, what in (
            ("at the proxy", "at_proxy"),
            ("in the network", "between"),
            ("at sources", "at_sources"),
            ("in the network, not near the proxy", "beyond"),
            ("in the proxy's domain", "by_proxy"),
            ("in a source's domain", "by_sources"),
            ("in other domains", "elsewhere"),
        )
    }
    return {
        "places": case[0],
        "selectivity up to": float(case[1]),
        "trees": table.count(case),
        "bandwidth ratio": table.mean(case, "ratio"),
        "stretch": table.mean(case, "stretch"),
        **shares,
    }


def _cases(parameters: Parameters, places: str) -> list[tuple[str, ...]]:
    return [(places, f"{most:g}") for most in parameters.selectivities]


def _curves(parameters: Parameters, table: Table, what: str, up: str) -> Draw:
    return curves(
        parameters.selectivities,
        {places: table.lines(_cases(parameters, places), what) for places in PLACES},
        across="selectivities, at most",
        up=up,
        title=f"in-network, mean and range of {parameters.seeds} topologies",
    )


def _bars(parameters: Parameters, table: Table) -> Draw:
    series = {
        f"{places}, {told}": [table.by_seed(case, what) for case in _cases(parameters, places)]
        for places in PLACES
        for told, what in (("at the proxy", "at_proxy"), ("in the network", "between"))
    }
    return bars(
        [f"up to {most:g}" for most in parameters.selectivities],
        series,
        up="share of the operators",
        title=f"in-network, mean and range of {parameters.seeds} topologies",
    )


def _beside(parameters: Parameters, table: Table) -> list[Beside]:
    def line(places: str, what: str) -> list[float]:
        return [table.mean(case, what) for case in _cases(parameters, places)]

    def ends(what: str) -> str:
        return ", ".join(f"{p} {line(p, what)[0]:.2f} to {line(p, what)[-1]:.2f}" for p in PLACES)

    def held(what: str, sign: int) -> bool:
        return all(np.all(sign * np.diff(line(p, what)) > -0.01) for p in PLACES)

    def more(what: str, one: str, other: str) -> bool:
        pairs = zip(line(one, what), line(other, what), strict=True)
        return all(mine > theirs for mine, theirs in pairs)

    def yes(holds: bool, told: str, why: str = "") -> tuple[str, str]:
        return f"{'yes' if holds else 'no'}: {told}", "" if holds else why

    return [
        Beside("11", "the ratio rises with the selectivity", *yes(held("ratio", 1), ends("ratio"))),
        Beside(
            "11",
            "star has higher ratios than cluster",
            *yes(more("ratio", "star", "cluster"), ends("ratio")),
        ),
        Beside(
            "11",
            "the stretch falls with the selectivity",
            *yes(held("stretch", -1), ends("stretch")),
        ),
        Beside(
            "12",
            "more operators in the network for a cluster than for a star",
            *yes(more("between", "cluster", "star"), ends("between"), _GATEWAY),
        ),
        Beside(
            "12",
            "the same, without the proxy's stub domain",
            *yes(more("beyond", "cluster", "star"), ends("beyond"), _GATEWAY),
        ),
        Beside(
            "12",
            "more operators at the proxy for a star than for a cluster",
            *yes(more("at_proxy", "star", "cluster"), ends("at_proxy")),
        ),
        Beside(
            "12",
            "the same, with the proxy's stub domain for the proxy",
            *yes(more("by_proxy", "star", "cluster"), ends("by_proxy")),
        ),
        Beside(
            "12",
            "less selective operators are more often in the network",
            *yes(held("between", 1), ends("between")),
        ),
        Beside(
            "12",
            "less selective operators are more often at the proxy",
            *yes(held("by_proxy", 1), ends("by_proxy") + " in its domain"),
        ),
    ]


_GATEWAY = (
    "with every host of the topology taking part, those in the network are mostly gateways in the "
    "stub domain of a source or of the proxy, where an operator saves the last hop; few are in "
    "other domains. A cluster's sources are so near each other that operators stand at the sources "
    "themselves. The source's overlay knows only the hosts on its routes"
)
