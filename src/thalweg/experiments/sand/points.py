"""Points of SAND's figures 6 to 12, placed by the protocol and by one who knows everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from thalweg.experiments.sand.measuring import (
    EDGE,
    EDGE_PLUS,
    IN_NETWORK,
    OPTIMAL,
    PlaceTree,
    Table,
    measure,
    usual,
    with_optimum,
)
from thalweg.experiments.sand.peers import Peers, place_all_by_protocol
from thalweg.experiments.sand.scenes import Scene, bounded
from thalweg.placement.arrays import Ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CLUSTER, CONFIGURATIONS, STAR, Configuration

ALL, ONE = (EDGE, EDGE_PLUS, IN_NETWORK), (IN_NETWORK,)
CENTRAL, DISTRIBUTED = "centralised", "distributed"
ROOM = 1e-4  # of a bound: probes tell whole microseconds, and halves of ways there and back


@dataclass(frozen=True)
class Sweep:
    seeds: int = 2  # topologies
    trees: int = 20  # on each, in each case
    nodes: int = 1000
    k: int = 100
    levels: int = 1  # of operators in a zone
    depths: tuple[int, ...] = (3, 4, 5)
    tight: float = 1.2  # times the longest direct delay
    loose: float = 3.0
    bounds_ms: tuple[float, ...] = (300.0, 1000.0)
    asd: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
    bounds: tuple[float, ...] = (1.0, 1.25, 2.0, 3.0)
    selectivities: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """One point of a figure."""

    figure: str
    at: str
    places: Configuration
    shape: Shape
    bound: str
    algorithms: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return (self.figure, self.at, self.bound)


def points(p: Sweep) -> Iterator[Asked]:
    usual_shape = Shape(p.depths)
    multiples = (_multiple(p.tight), _multiple(p.loose))
    for places in CONFIGURATIONS.values():
        for bound in multiples:
            yield Asked("6, 7", places.name, places, usual_shape, bound, ALL)
    for asd in p.asd:
        apart = Configuration(f"ASD {asd:g}", CLUSTER.apd, asd)
        for bound_ms in p.bounds_ms:
            yield Asked("8", f"ASD {asd:g}", apart, usual_shape, f"{bound_ms:g} ms", ONE)
    middle = (p.depths[len(p.depths) // 2],)
    shapes = {
        "binary": Shape(middle),
        "deeper": Shape((max(p.depths),) if len(p.depths) > 1 else (middle[0] + 1,)),
        "wider": Shape(middle, fanout=3) if middle[0] < 4 else Shape((3,), fanout=3),
    }
    for name, shape in shapes.items():
        for multiple in p.bounds:
            uniform = CONFIGURATIONS["uniform"]
            yield Asked("9, 10", name, uniform, shape, _multiple(multiple), ONE)
    for places in (CLUSTER, STAR):
        for most in p.selectivities:
            shape = Shape(p.depths, selectivity=most)
            at = f"{places.name}, up to {most:g}"
            yield Asked("11, 12", at, places, shape, _multiple(p.loose), ONE)


def _multiple(multiple: float) -> str:
    return f"{multiple:g} × direct"


def _bounded(tree: Tree, bound: str, scene: Scene) -> Tree:
    """A bound in ms that the farthest source breaks becomes the tree's own direct delay."""
    number, _, unit = bound.partition(" ")
    if unit == "ms":
        return replace(tree, bound_ms=max(float(number), direct_ms(tree, scene.latency_ms)))
    return bounded(tree, float(number), scene.latency_ms)


def measure_point(p: Sweep, scene: Scene, peers: Peers, point: Asked, table: Table) -> None:
    drawn = scene.trees(point.places, point.shape, p.trees)
    trees = [_bounded(tree, point.bound, scene) for tree in drawn]
    for name in point.algorithms:
        central = usual(p.k)[name]
        for tree in trees:
            found = measure(tree, scene.ways, central, scene.sites)
            table.add((*point.key, name, CENTRAL), scene.seed, found)
        said = [replace(tree, bound_ms=tree.bound_ms * (1 + ROOM)) for tree in trees]
        for tree, at in zip(
            said, place_all_by_protocol(peers, said, name, p.levels, p.k), strict=True
        ):
            found = measure(tree, scene.ways, _as_placed(at), scene.sites)
            table.add((*point.key, name, DISTRIBUTED), scene.seed, found)
    if point.figure == "6, 7":
        best = with_optimum({})[OPTIMAL]
        for tree in trees:
            found = measure(tree, scene.ways, best, scene.sites)
            table.add((*point.key, OPTIMAL, CENTRAL), scene.seed, found)


def _as_placed(at: Ints) -> PlaceTree:
    def placed(tree: Tree, ways: Ways) -> Ints:
        return at

    return placed
