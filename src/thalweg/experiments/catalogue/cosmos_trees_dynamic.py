"""Dissemination trees when their top nodes slow down (COSMOS, figures 4.4, 4.9)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.experiments.trees.contest import ADAPTIVE, DITA, SA, Contest, contest
from thalweg.experiments.trees.course import PERIOD_S, course
from thalweg.experiments.trees.world import (
    TreeWorld,
    many_objects_world,
    one_object_world,
    top_nodes,
)
from thalweg.placement.trees.annealing import Annealing, Cooling

REPORTED_S = 1_000.0  # a value in the figures


@dataclass(frozen=True)
class Parameters:
    nodes: int = 256
    seconds: float = 20_000.0
    slow_at_s: float = 10_000.0
    seconds_many: float = 10_000.0
    slow_at_many_s: float = 5_000.0
    objects: int = 100
    slowed: int = 10
    factor: float = 10.0
    moves_per_node: int = 64
    moves_per_node_many: int = 16
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=48,
            seconds=6_000.0,
            slow_at_s=2_000.0,
            seconds_many=6_000.0,
            slow_at_many_s=2_000.0,
            objects=20,
            slowed=4,
            moves_per_node=8,
            moves_per_node_many=2,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    one = one_object_world(p.seed, p.nodes, p.seconds)
    many = many_objects_world(p.seed, p.nodes, p.seconds_many, p.objects)
    cases = (
        ("4.4", one, p.slow_at_s, p.moves_per_node, (SA, SA + ADAPTIVE, DITA)),
        ("4.9", many, p.slow_at_many_s, p.moves_per_node_many, (SA, SA + ADAPTIVE)),
    )
    rows: list[dict[str, Any]] = []
    lines: dict[str, dict[str, list[float]]] = {}
    for number, (figure, world, at_s, moves, methods) in enumerate(cases):

        def tell(text: str, done: float = number / 2, at: str = figure) -> None:
            progress(f"{at}: {text}", done)

        lines[figure] = _measured(p, world, at_s, Cooling(moves_per_node=moves), methods, tell)
        for method, values in lines[figure].items():
            rows += [
                {
                    "figure": figure,
                    "method": method,
                    "second": (i + 1) * REPORTED_S,
                    "× SA": round(v, 3),
                }
                for i, v in enumerate(values)
            ]
    return Report(
        "cosmos-trees-dynamic",
        "Dissemination trees whose top nodes slow down (COSMOS, figures 4.4, 4.9)",
        asdict(p),
        rows,
        goals=_goals(p, lines),
        beside=_beside(p, lines),
        notes=NOTES,
        figures={f"{figure}-course": _figure(by) for figure, by in lines.items()},
    )


def _measured(
    p: Parameters,
    world: TreeWorld,
    at_s: float,
    cooling: Cooling,
    methods: tuple[str, ...],
    tell: Any,
) -> dict[str, list[float]]:
    """Values of 1,000 s each, beside SA's tree for the time before and SA's for the time after."""
    tell("SA before the change")
    before = Annealing(cooling).build(world.nodes, world.cargos, p.seed)[0]
    slow = world.slowed(top_nodes(before, p.slowed), p.factor)
    tell("SA after the change")
    after = Annealing(cooling).build(slow.nodes, slow.cargos, p.seed)[0]
    made: Contest = contest(world, p.seed, methods, cooling, tell, (at_s, slow), {SA: before})
    tell("the yardstick")
    first = course(world, before, adapts=False, seed=p.seed)
    second = course(slow, after, adapts=False, seed=p.seed)
    each, change = int(REPORTED_S / PERIOD_S), int(at_s / PERIOD_S)
    found: dict[str, list[float]] = {m: [] for m in methods}
    for start in range(0, len(first.losses) - each + 1, each):
        yardstick = (first if start < change else second).mean(start, start + each)
        for method in methods:
            found[method].append(made.courses[method].mean(start, start + each) / yardstick)
    return found


def _ends(p: Parameters, lines: dict[str, dict[str, list[float]]], figure: str) -> dict[str, float]:
    """The last fifth."""
    by = lines[figure]
    return {m: sum(v[-max(1, len(v) // 5) :]) / max(1, len(v) // 5) for m, v in by.items()}


def _goals(p: Parameters, lines: dict[str, dict[str, list[float]]]) -> list[Goal]:
    return [
        Goal(
            f"SA+Adaptive in the last fifth after the slow-down, figure {figure}",
            round(_ends(p, lines, figure)[SA + ADAPTIVE], 3),
            1.1,
            "× SA's new optimum",
            False,
        )
        for figure in lines
    ]


def _beside(p: Parameters, lines: dict[str, dict[str, list[float]]]) -> list[Beside]:
    def told(figure: str, method: str) -> str:
        values, change = (
            lines[figure][method],
            int((p.slow_at_s if figure == "4.4" else p.slow_at_many_s) / REPORTED_S),
        )
        return (
            f"{method} {sum(values[:change]) / change:.2f} before, {values[change]:.2f} in the "
            f"{REPORTED_S:,.0f} s after, {_ends(p, lines, figure)[method]:.2f} in the end"
        )

    return [
        Beside(
            "4.4",
            "DiTA 2 × before; SA and DiTA rise drastically and stay; Adaptive falls back",
            "; ".join(told("4.4", m) for m in lines["4.4"]),
            "the ten nodes are those at the top of SA's tree, for all methods; they need not be "
            "at the top of DiTA's",
        ),
        Beside(
            "4.9",
            "SA rises and stays; SA+Adaptive is restored",
            "; ".join(told("4.9", m) for m in lines["4.9"]),
        ),
    ]


def _figure(by: dict[str, list[float]]) -> Draw:
    longest = max(len(v) for v in by.values())
    x = [(i + 1) * REPORTED_S for i in range(longest)]
    lines = {m: [v] for m, v in by.items()}
    return curves(x, lines, across="seconds", up="AvgLF, × SA", title="")


NOTES = (
    "Values are measured over 1,000 s each, and divided by those of SA's tree for the nodes as "
    "they are then, on the same rows. The slow nodes take ten times as long to filter and to send.",
)
