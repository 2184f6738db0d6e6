"""One tree for many objects beside a tree for each (COSMOS, figures 4.6, 4.7)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.resuming import once
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.experiments.trees.world import TreeWorld, many_objects_world
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.dita import DiTA
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import Forest

ONE, EACH = "one tree", "a tree each"
SA, GREEDY, DITA = "SA", "Greedy", "DiTA"


@dataclass(frozen=True)
class Parameters:
    nodes: int = 256
    seconds: float = 20_000.0  # over which rates are measured
    objects: tuple[int, ...] = (100, 500)
    loads: tuple[int, ...] = (1, 2, 4, 6, 8)
    interest: float = 0.6
    interests: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    interest_load: float = 8.0
    moves_per_node: int = 16  # of the annealing that follows Greedy
    start: float = 0.05  # its first temperature
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=32,
            seconds=4_000.0,
            objects=(10,),
            loads=(1, 8),
            interests=(0.2, 0.8),
            moves_per_node=4,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    few = min(p.objects)
    cases = [("4.6", few, float(load), p.interest) for load in p.loads]
    cases += [("4.7", n, p.interest_load, i) for n in p.objects for i in p.interests]
    rows: list[dict[str, Any]] = []
    for number, (figure, objects, load, interest) in enumerate(cases):
        about = {"figure": figure, "objects": objects, "load": load, "interest": interest}
        for approach in (ONE, EACH):
            progress(f"{figure}: {about}, {approach}", number / len(cases))
            size = p.nodes, p.seconds, p.moves_per_node, p.start, min(p.objects)
            found = once(
                ("many", p.seed, *size, *about.values(), approach),
                lambda about=about, each=approach == EACH: _losses(p, each, **about),  # type: ignore[misc]
            )
            rows += [
                {**about, "approach": approach, "method": m, "AvgLF %": round(100 * lost, 5)}
                for m, lost in found.items()
            ]
    return Report(
        "cosmos-trees-many",
        "One tree for many objects, and a tree for each (COSMOS, figures 4.6, 4.7)",
        asdict(p),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures=_figures(p, rows),
    )


def _losses(
    p: Parameters, each: bool, figure: str, objects: int, load: float, interest: float
) -> dict[str, float]:
    world = many_objects_world(
        p.seed, p.nodes, p.seconds, objects, load=load, interest=interest, each=each
    )
    built = _built(p, world, objects)
    return {method: loss(world.nodes, world.cargos, forest) for method, forest in built.items()}


def _built(p: Parameters, world: TreeWorld, objects: int) -> dict[str, Forest]:
    greedy = Greedy().build(world.nodes, world.cargos)
    cooling = Cooling(moves_per_node=p.moves_per_node, start=p.start)
    annealed = Annealing(cooling, greedy).build(world.nodes, world.cargos, p.seed)
    found = {SA: annealed, GREEDY: greedy}
    if objects == min(p.objects):
        found[DITA] = DiTA().build(world.nodes, world.cargos)
    return found


def _saved(rows: list[dict[str, Any]], figure: str, method: str) -> list[float]:
    """What a tree each loses, beside one tree: 1 is as much."""
    kept = [r for r in rows if r["figure"] == figure and r["method"] == method]
    one = {_case(r): r["AvgLF %"] for r in kept if r["approach"] == ONE}
    each = {_case(r): r["AvgLF %"] for r in kept if r["approach"] == EACH}
    return [each[c] / one[c] for c in one]


def _case(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["objects"], row["load"], row["interest"]


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    return [
        Goal(
            f"a tree each beside one tree, SA, worst case of figure {figure}",
            round(max(_saved(rows, figure, SA)), 3),
            1.0,
            "× its loss",
            False,
        )
        for figure in ("4.6", "4.7")
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    def told(figure: str, method: str = SA) -> str:
        return ", ".join(f"{v:.2f}" for v in _saved(rows, figure, method))

    return [
        Beside(
            "4.6",
            "a tree each is always better, the more so the higher the load",
            f"its loss is {told('4.6')} × that of one tree (Greedy: {told('4.6', GREEDY)})",
        ),
        Beside(
            "4.7",
            "always better; the smaller the interest, and the more the objects, the more so",
            f"its loss is {told('4.7')} ×, in the order of the table",
        ),
        Beside(
            "4.4.1",
            "DiTA builds a tree for each object",
            f"with a tree each it loses {told('4.6', DITA)} × as much as with one tree",
        ),
    ]


def _figures(p: Parameters, rows: list[dict[str, Any]]) -> dict[str, Draw]:
    def values(figure: str, approach: str, method: str, objects: int) -> list[float]:
        wanted = {"figure": figure, "approach": approach, "method": method, "objects": objects}
        return [r["AvgLF %"] for r in rows if wanted.items() <= r.items()]

    few = min(p.objects)
    by_load = {f"{a}, {m}": [values("4.6", a, m, few)] for a in (ONE, EACH) for m in (SA, GREEDY)}
    by_interest = {
        f"{a}, {n} objects": [values("4.7", a, SA, n)] for a in (ONE, EACH) for n in p.objects
    }
    return {
        "4.6-load": curves(p.loads, by_load, across="load", up="AvgLF, %", title=""),
        "4.7-interest": curves(
            p.interests, by_interest, across="interest", up="AvgLF, %", title=""
        ),
    }


NOTES = (
    "Losses are by the cost model: where two trees share nodes in either order, rows can't be "
    "played from the home down. (Played event by event in small, losses are within 10 % of it.) "
    "SA starts from Greedy's trees, cold: a tree each has sixty times "
    "as many places as one tree, and the source's 64 moves a node at each temperature would be "
    "one for each place.",
)
