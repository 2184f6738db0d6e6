"""Placements of trees, measured as SAND measures them (6.1), and verified.

The bandwidth consumption ratio is the cost of a placement over that of the baseline, all at the
proxy; the stretch is its longest delay over the longest direct one. A placement that `verify`
objects to ends the experiment: its figures would mean nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.experiments.sand.scenes import Scene
from thalweg.placement.arrays import Ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.deploying import deploy
from thalweg.placement.sand.edge import edge
from thalweg.placement.sand.edge_plus import edge_plus
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.placeable import direct_ms, limit_ms
from thalweg.placement.sand.placing import place, straight
from thalweg.placement.sand.query_trees import Placed
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import problem_of_trees, unlimited
from thalweg.placement.verify import verify

PlaceTree = Callable[[Tree, Ways], Ints]

EDGE, EDGE_PLUS, IN_NETWORK, OPTIMAL = "edge", "edge+", "in-network", "optimal"


def edge_tree(tree: Tree, ways: Ways) -> Ints:
    return place(tree, ways, edge)


def edge_plus_tree(tree: Tree, ways: Ways) -> Ints:
    return place(tree, ways, edge_plus)


def in_network_tree(k: int) -> PlaceTree:
    return lambda tree, ways: place(tree, ways, in_network(k))


def usual(k: int) -> dict[str, PlaceTree]:
    """The three of the source's figures."""
    return {EDGE: edge_tree, EDGE_PLUS: edge_plus_tree, IN_NETWORK: in_network_tree(k)}


def with_optimum(strategies: Mapping[str, PlaceTree]) -> dict[str, PlaceTree]:
    return {**strategies, OPTIMAL: optimal}


@dataclass(frozen=True, slots=True)
class Measured:
    ratio: float
    stretch: float
    at_proxy: float  # share of the operators
    at_sources: float
    by_proxy: float  # in the stub domain of the proxy, that included
    by_sources: float  # in that of a source, and not of the proxy
    seconds: float  # of CPU, for placing it
    beyond: float = 0.0  # neither at a source nor in the proxy's domain

    @property
    def between(self) -> float:
        return round(1 - self.at_proxy - self.at_sources, 9)  # sums of shares have last digits

    @property
    def elsewhere(self) -> float:
        return 1 - self.by_proxy - self.by_sources


def measure(tree: Tree, ways: Ways, place_tree: PlaceTree, sites: Ints | None = None) -> Measured:
    """`sites` are the stub domains of hosts; without them, each host is its own."""
    began = time.process_time()
    at = place_tree(tree, ways)
    seconds = time.process_time() - began
    delay = tree.delay_ms(at, ways.latency_ms)
    if delay > limit_ms(tree):
        raise RuntimeError(f"a placement takes {delay} ms; its bound is {tree.bound_ms} ms")
    baseline = tree.cost(straight(tree, ways.latency_ms), ways.latency_ms)
    sites = np.arange(len(ways.latency_ms), dtype=np.int32) if sites is None else sites
    hosts, homes = at[list(tree.operators)], tree.pinned[list(tree.sources)]
    by_proxy = sites[hosts] == sites[tree.proxy]
    return Measured(
        tree.cost(at, ways.latency_ms) / baseline,
        delay / direct_ms(tree, ways.latency_ms),
        float((hosts == tree.proxy).mean()),
        float((np.isin(hosts, homes) & (hosts != tree.proxy)).mean()),
        float(by_proxy.mean()),
        float((np.isin(sites[hosts], sites[homes]) & ~by_proxy).mean()),
        seconds,
        float((~np.isin(hosts, homes) & ~by_proxy).mean()),
    )


def check(scene: Scene, trees: Sequence[Tree], place_tree: PlaceTree) -> None:
    """All trees as one problem, placed, deployed together and verified."""
    problem, found = problem_of_trees(unlimited(scene.latency_ms), trees)
    placed = [Placed(one, place_tree(one.tree, scene.ways)) for one in found]
    objections = verify(problem, deploy(problem, placed))
    if objections:
        raise RuntimeError(f"a placement can't run: {objections[0]}")


@dataclass
class Table:
    """What was measured, by case (a tuple of words), topology by topology."""

    cells: dict[tuple[str, ...], dict[int, list[Measured]]] = field(default_factory=dict)

    def add(self, case: tuple[str, ...], seed: int, measured: Measured) -> None:
        self.cells.setdefault(case, {}).setdefault(seed, []).append(measured)

    def mean(self, case: tuple[str, ...], what: str) -> float:
        """Over all trees of all topologies."""
        found = [getattr(m, what) for trees in self.cells[case].values() for m in trees]
        return float(np.mean(found))

    def count(self, case: tuple[str, ...]) -> int:
        return sum(len(trees) for trees in self.cells.get(case, {}).values())

    def by_seed(self, case: tuple[str, ...], what: str) -> list[float]:
        return [
            float(np.mean([getattr(m, what) for m in trees])) for trees in self.cells[case].values()
        ]

    def lines(self, cases: Sequence[tuple[str, ...]], what: str) -> list[list[float]]:
        """Of each topology, the means of one case after the other."""
        return [list(line) for line in zip(*(self.by_seed(c, what) for c in cases), strict=True)]
