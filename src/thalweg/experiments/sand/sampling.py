"""Trees by cases, on one topology after the other: what the experiments on placement go through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from thalweg.experiments.report import Progress
from thalweg.experiments.sand.measuring import Table
from thalweg.experiments.sand.scenes import Scene, make_scene
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import Configuration


@dataclass(frozen=True)
class Sample:
    """Parameters that they all have."""

    seeds: int = 10  # topologies
    trees: int = 100  # on each, in each case
    nodes: int = 1000
    k: int = 100  # hosts in between that In-Network tries


@dataclass(frozen=True, slots=True)
class Case:
    key: tuple[str, ...]  # what a table knows it by
    places: Configuration
    shape: Shape


MeasureTree = Callable[[Scene, tuple[str, ...], Tree, Table], None]  # the key is the case's
_S = TypeVar("_S", bound=Sample)


def sampled(
    sample: _S, cases: Sequence[Case], measure_tree: MeasureTree, progress: Progress
) -> tuple[Table, _S]:
    """What was measured, and of which sample: interrupted, it has fewer topologies."""

    def measure_seed(seed: int, table: Table) -> None:
        scene = make_scene(seed, sample.nodes)
        for i, case in enumerate(cases):
            trees = scene.trees(case.places, case.shape, sample.trees)
            for number, tree in enumerate(trees):
                done = (i + number / sample.trees) / len(cases)
                told = f"topology {seed}, {', '.join(case.key)}"
                progress(told, (seed + done) / sample.seeds)
                measure_tree(scene, case.key, tree, table)

    table, seeds = by_topology(sample.seeds, measure_seed)
    return table, replace(sample, seeds=seeds)


def by_topology(seeds: int, measure_seed: Callable[[int, Table], None]) -> tuple[Table, int]:
    """One topology after the other; interrupted (Ctrl-C), those that are complete, if any."""
    table = Table()
    for seed in range(seeds):
        of_seed = Table()
        try:
            measure_seed(seed, of_seed)
        except KeyboardInterrupt:
            if seed == 0:
                raise
            return table, seed
        for case, cells in of_seed.cells.items():
            table.cells.setdefault(case, {}).update(cells)
    return table, seeds
