"""SAND, figures 6 and 7: bandwidth and stretch by algorithm, places of sources, and bound.

Transit-stub topologies of 1,000 nodes, 500 ms wide; binary trees of depth 3 to 5, selectivities
from 0 to 1. Bounds are multiples of each tree's longest direct delay; the source's own, in
milliseconds, are reported for the trees that can meet them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sand.comparison import figure_6, figure_7
from thalweg.experiments.sand.figures import bars
from thalweg.experiments.sand.measuring import (
    EDGE,
    EDGE_PLUS,
    IN_NETWORK,
    OPTIMAL,
    Table,
    check,
    in_network_tree,
    measure,
    usual,
    with_optimum,
)
from thalweg.experiments.sand.sampling import Sample, by_topology
from thalweg.experiments.sand.scenes import Scene, bounded, make_scene
from thalweg.experiments.sand.timing import Times, times
from thalweg.experiments.sqpr.figures import Draw
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CONFIGURATIONS

UNBOUNDED = "none"


@dataclass(frozen=True)
class Parameters(Sample):
    depths: tuple[int, ...] = (3, 4, 5)  # of the trees, in equal parts
    tight: float = 1.2  # times the longest direct delay
    loose: float = 3.0
    bounds_ms: tuple[float, ...] = (120.0, 300.0)
    fewer: tuple[int, ...] = (1, 10)  # the same with less
    shared: int = 4  # streams at each source's host, in a second run with the loose bound
    verified: int = 10  # trees of each topology that are deployed together and verified
    timed: int = 5  # trees of 63 nodes in each configuration, for the goals on time

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=2, trees=10, verified=5, timed=1)


def run(parameters: Parameters, progress: Progress) -> Report:
    def measure_seed(seed: int, table: Table) -> None:
        collect(parameters, seed, table, progress)

    table, seeds = by_topology(parameters.seeds, measure_seed)
    progress("times on all nodes", None)
    timed = times(parameters.nodes, with_optimum(usual(parameters.k)), parameters.timed)
    return report(replace(parameters, seeds=seeds), table, timed)


def collect(parameters: Parameters, seed: int, table: Table, progress: Progress) -> None:
    """Everything on one topology."""
    scene, shape = make_scene(seed, parameters.nodes), Shape(parameters.depths)
    for i, places in enumerate(CONFIGURATIONS.values()):
        trees = list(scene.trees(places, shape, parameters.trees))
        for number, tree in enumerate(trees):
            done = (i + number / len(trees)) / len(CONFIGURATIONS)
            told = f"topology {seed}, {places.name}, tree {number}"
            progress(told, (seed + done) / parameters.seeds)
            for bound, one in _bounds(tree, scene, parameters):
                _place(parameters, scene, (places.name, bound), one, table)
        tight = [bounded(t, parameters.tight, scene.latency_ms) for t in trees]
        for place_tree in with_optimum(usual(parameters.k)).values():
            check(scene, tight[: parameters.verified], place_tree)
        together = scene.trees(places, shape, parameters.trees, streams_per_host=parameters.shared)
        for tree in together:
            one = bounded(tree, parameters.loose, scene.latency_ms)
            for name, place_tree in usual(parameters.k).items():
                case = (_shared(parameters, places.name), _multiple(parameters.loose), name)
                table.add(case, seed, measure(one, scene.ways, place_tree))


def _bounds(tree: Tree, scene: Scene, parameters: Parameters) -> Iterator[tuple[str, Tree]]:
    yield UNBOUNDED, tree
    for multiple in (parameters.tight, parameters.loose):
        yield _multiple(multiple), bounded(tree, multiple, scene.latency_ms)
    for bound_ms in parameters.bounds_ms:
        if direct_ms(tree, scene.latency_ms) <= bound_ms:
            yield f"{bound_ms:g} ms", replace(tree, bound_ms=bound_ms)


def _place(
    parameters: Parameters, scene: Scene, case: tuple[str, str], tree: Tree, table: Table
) -> None:
    strategies = with_optimum(usual(parameters.k))
    if case[1] == UNBOUNDED:
        strategies |= {f"in-network, k = {k}": in_network_tree(k) for k in parameters.fewer}
    found = {name: measure(tree, scene.ways, place) for name, place in strategies.items()}
    for name, measured in found.items():
        if measured.ratio < found[OPTIMAL].ratio * (1 - 1e-9):
            raise RuntimeError(f"{name} is better than the optimum on topology {scene.seed}")
        table.add((*case, name), scene.seed, measured)


def report(parameters: Parameters, table: Table, timed: Times) -> Report:
    tight, loose = _multiple(parameters.tight), _multiple(parameters.loose)
    return Report(
        "sand-placement",
        "Bandwidth and stretch by algorithm (SAND, figures 6 and 7)",
        asdict(parameters),
        [_row(table, case) for case in table.cells],
        goals=_goals(table, [UNBOUNDED, tight, loose], timed),
        beside=[
            *figure_6(table, tight, loose),
            _level(parameters, table),
            *figure_7(table, tight, loose),
            *_ms(parameters, table),
        ],
        notes=[
            "*Bandwidth ratio*: Σ rate × distance over that of the baseline, everything at the "
            "proxy. *Stretch*: the longest delay over the longest direct one. Both are means over "
            "trees; *over optimum* is a ratio of means. *ms* is CPU time for one tree.",
            "The source compares the distributed versions of its algorithms; these are the "
            "centralised ones.",
        ],
        figures={
            "bandwidth": _bars(parameters, table, "ratio", "bandwidth, of the baseline's"),
            "stretch": _bars(parameters, table, "stretch", "stretch of the longest way"),
        },
    )


def _row(table: Table, case: tuple[str, ...]) -> dict[str, Any]:
    best = (*case[:2], OPTIMAL)
    return {
        "places": case[0],
        "bound": case[1],
        "strategy": case[2],
        "trees": table.count(case),
        "bandwidth ratio": table.mean(case, "ratio"),
        "over optimum": table.mean(case, "ratio") / table.mean(best, "ratio")
        if table.count(best)
        else "-",
        "stretch": table.mean(case, "stretch"),
        "at the proxy": table.mean(case, "at_proxy"),
        "ms": 1000 * table.mean(case, "seconds"),
    }


def _goals(table: Table, bounds: list[str], timed: Times) -> list[Goal]:
    def worst(name: str, other: str) -> float:
        return max(
            table.mean((places, bound, name), "ratio") / table.mean((places, bound, other), "ratio")
            for places in CONFIGURATIONS
            for bound in bounds
        )

    on = f"63 nodes on {timed.hosts:,} hosts"
    slowest = max(timed.unbounded.values())
    return [
        Goal("in-network over optimum, worst", worst(IN_NETWORK, OPTIMAL), 1.05, "x", False),
        Goal("edge+ over edge, worst", worst(EDGE_PLUS, EDGE), 0.98, "x", False),
        Goal("in-network over edge, worst", worst(IN_NETWORK, EDGE), 0.95, "x", False),
        Goal(f"slowest strategy without a bound, {on}", slowest, 1.0, "s", False),
        Goal(f"slowest bounded optimum, {on}", timed.bounded, 60.0, "s", False),
    ]


def _level(parameters: Parameters, table: Table) -> Beside:
    """All that is left of figure 6's numbers is a label of its axis."""
    loose = _multiple(parameters.loose)

    def told(name: Callable[[str], str]) -> str:
        means = ((p, table.mean((name(p), loose, IN_NETWORK), "ratio")) for p in CONFIGURATIONS)
        return ", ".join(f"{places} {mean:.2f}" for places, mean in means)

    return Beside(
        "6",
        "ratios of 0.45 and less, if the one label that can be read is the axis's last",
        told(str),
        "how many streams share a host is not said: streams that start together meet at no cost. "
        f"With {parameters.shared} at each host: {told(lambda p: _shared(parameters, p))}",
    )


def _ms(parameters: Parameters, table: Table) -> list[Beside]:
    """What became of the source's own bounds."""
    in_all = sum(table.count((places, UNBOUNDED, EDGE)) for places in CONFIGURATIONS)
    found = []
    for bound_ms in parameters.bounds_ms:
        bound = f"{bound_ms:g} ms"
        met = sum(table.count((places, bound, EDGE)) for places in CONFIGURATIONS)
        found.append(
            Beside(
                "6, 7",
                f"a bound of {bound}",
                f"{met} of {in_all} trees can meet it",
                "with sources 0.2 or 0.4 of 500 ms away on average, the farthest is farther than "
                "that; how the source met it is not said",
            )
        )
    return found


def _bars(parameters: Parameters, table: Table, what: str, up: str) -> Draw:
    cases = [
        (places, _multiple(multiple))
        for multiple in (parameters.tight, parameters.loose)
        for places in CONFIGURATIONS
    ]
    return bars(
        [f"{places}\n{bound}" for places, bound in cases],
        {
            name: [table.by_seed((*case, name), what) for case in cases]
            for name in (EDGE, EDGE_PLUS, IN_NETWORK, OPTIMAL)
        },
        up=up,
        title=f"mean and range of {parameters.seeds} topologies",
    )


def _shared(parameters: Parameters, places: str) -> str:
    return f"{places}, {parameters.shared} streams a host"


def _multiple(times: float) -> str:
    return f"{times:g} × direct"
