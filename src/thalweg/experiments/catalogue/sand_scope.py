"""SAND, section 5: how likely it is that a placement saves anything, by the formula and by draws.

The source gives P_S = 1 − (1/(d + 1))^(d^h) for trees of fanout d with d^h sources: all costs are
drawn alike, and the baseline stays the best only if every operator above the sources gives more
than each of its inputs. Both readings of its exponent are set beside draws by that model, beside
draws of the trees of section 6, and beside placements of these on topologies.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sand.measuring import EDGE, EDGE_PLUS, IN_NETWORK, usual
from thalweg.experiments.sand.scenes import Scene, make_scene
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.sand.placing import straight
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CONFIGURATIONS

NAMES = (EDGE, EDGE_PLUS, IN_NETWORK)
SAVES = 1e-9  # of the baseline: less is rounding


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3  # topologies
    trees: int = 200  # placed on each, of each shape
    draws: int = 20_000  # without a topology
    nodes: int = 300
    places: str = "uniform"
    fanouts: tuple[int, ...] = (2, 3)
    depths: tuple[int, ...] = (1, 2, 3)
    k: int = 10

    def __post_init__(self) -> None:
        if self.places not in CONFIGURATIONS:
            raise ValueError(f"places are {', '.join(CONFIGURATIONS)}, not {self.places}")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=1, trees=30, draws=5_000, nodes=200, depths=(1, 2))


def printed(fanout: int, depth: int) -> float:
    """P_S, for a tree of d^h sources."""
    return 1 - (1 / (fanout + 1)) ** (fanout**depth)


def by_operators(fanout: int, depth: int) -> float:
    """The same, with one factor for each operator right above the sources: d^(h − 1) of them."""
    return 1 - (1 / (fanout + 1)) ** (fanout ** (depth - 1))


def drawn_alike(fanout: int, depth: int, draws: int, rng: np.random.Generator) -> float:
    """The source's model: what an operator gives is drawn like what it takes."""
    operators = fanout ** (depth - 1)
    given = rng.random((draws, operators))
    taken = rng.random((draws, operators, fanout)).max(axis=2)
    return float((given < taken).any(axis=1).mean())


def drawn_trees(shape: Shape, depth: int, draws: int, rng: np.random.Generator) -> float:
    """Rates and selectivities of section 6: an operator gives a share of all that it takes."""
    operators = shape.fanout ** (depth - 1)
    taken = rng.uniform(*shape.rate_bps, (draws, operators, shape.fanout))
    given = rng.uniform(0, shape.selectivity, (draws, operators)) * taken.sum(axis=2)
    return float((given < taken.max(axis=2)).any(axis=1).mean())


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    shapes = [(d, h) for d in p.fanouts for h in p.depths]
    saved: dict[tuple[int, int, str], list[bool]] = {}
    for seed in range(p.seeds):
        scene = make_scene(seed, p.nodes)
        for i, (fanout, depth) in enumerate(shapes):
            progress(
                f"topology {seed}, {fanout}-ary, {depth} deep", (seed + i / len(shapes)) / p.seeds
            )
            shape = Shape(depths=(depth,), fanout=fanout)
            for tree in scene.trees(CONFIGURATIONS[p.places], shape, p.trees):
                for name in NAMES:
                    found = _saves(scene, tree, name, p.k)
                    saved.setdefault((fanout, depth, name), []).append(found)
    rows = [_row(p, saved, fanout, depth) for fanout, depth in shapes]
    return Report(
        "sand-scope",
        "How likely a placement saves anything (SAND, section 5)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "scope": curves(
                p.depths,
                {
                    f"{d}-ary, {name}": [[row[name] for row in rows if row["fanout"] == d]]
                    for d in p.fanouts
                    for name in (PRINTED, ALIKE, TREES)
                },
                across="depth of the tree",
                up="share of trees for which something is saved",
                title="",
            )
        },
    )


def _saves(scene: Scene, tree: Tree, name: str, k: int) -> bool:
    ways = scene.ways
    baseline = tree.cost(straight(tree, ways.latency_ms), ways.weight)
    at = usual(k)[name](tree, ways)
    return bool(tree.cost(at, ways.weight) < baseline * (1 - SAVES))


PRINTED, OPERATORS = "P_S as printed", "P_S by operators"
ALIKE, TREES = "drawn by its model", "drawn trees of section 6"


def _row(
    p: Parameters, saved: dict[tuple[int, int, str], list[bool]], fanout: int, depth: int
) -> dict[str, Any]:
    rng = np.random.default_rng([fanout, depth])
    return {
        "fanout": fanout,
        "depth": depth,
        "sources": fanout**depth,
        PRINTED: printed(fanout, depth),
        OPERATORS: by_operators(fanout, depth),
        ALIKE: drawn_alike(fanout, depth, p.draws, rng),
        TREES: drawn_trees(Shape(fanout=fanout), depth, p.draws, rng),
        **{name: float(np.mean(saved[fanout, depth, name])) for name in NAMES},
    }


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    apart = max(abs(row[OPERATORS] - row[ALIKE]) for row in rows)
    short = min(row[IN_NETWORK] - row[TREES] for row in rows)
    return [
        Goal("draws by the source's model against P_S by operators", apart, 0.015, at_least=False),
        Goal("trees that In-Network saves on, less those that must save", short, -0.05),
    ]


def _told(rows: list[dict[str, Any]], *names: str) -> str:
    return "; ".join(
        f"d = {r['fanout']}, h = {r['depth']}: " + " and ".join(f"{r[n]:.3f}" for n in names)
        for r in rows
    )


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    return [
        Beside(
            "5",
            "P_S = 1 − (1/(d + 1))^(d^h): " + _told(rows, PRINTED),
            "drawn by its own model: " + _told(rows, ALIKE),
            "a tree of d^h sources has d^(h − 1) operators right above them, and the condition is "
            "one for each of these; with that exponent it is " + _told(rows, OPERATORS),
        ),
        Beside(
            "5",
            "what an operator gives is drawn like what it takes",
            "by the rates and selectivities of section 6: " + _told(rows, TREES),
            "an operator gives its selectivity times the sum of its inputs (6.4); the more inputs, "
            "the less often that is below the largest of them",
        ),
        Beside(
            "5",
            "a lower bound for the algorithm that may use any location",
            "placed by In-Network: "
            + _told(rows, IN_NETWORK)
            + "; by Edge+: "
            + _told(rows, EDGE_PLUS)
            + "; by Edge: "
            + _told(rows, EDGE),
            "as printed it is none: its exponent is too large. The share of drawn trees is one for "
            "Edge+ and In-Network, and none for Edge, which like the analysis has no distances: "
            "a detour to another source can cost more than it saves",
        ),
    ]


NOTES = (
    "*Drawn* counts trees in which an operator right above the sources gives less than its largest "
    "input: where all are equally far from each other, it then pays to run it there. The last "
    "three columns are shares of trees for which the placement costs less than everything at the "
    "proxy, on topologies.",
)
