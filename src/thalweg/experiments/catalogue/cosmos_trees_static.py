"""Dissemination trees while nothing changes, by load, rate and objects (COSMOS, figures 4.3, 4.5).

Figure 4.3 has one object, synthetic; figure 4.5 many objects in one tree, prices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.resuming import once
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.experiments.trees.contest import (
    ADAPTIVE,
    DITA,
    GREEDY,
    METHODS,
    RANDOM,
    SA,
    STAR,
    SWEPT,
    Contest,
    contest,
)
from thalweg.experiments.trees.setting import drawn_nodes, drawn_rates
from thalweg.experiments.trees.world import TreeWorld, many_objects_world, one_object_world
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.bound import lower_bound
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import Nodes, one_object
from thalweg.placement.trees.optimum import optimum

PERIODS = 30  # after which the source reports 1.3 ×


@dataclass(frozen=True)
class Parameters:
    nodes: int = 256
    seconds: float = 20_000.0
    loads: tuple[int, ...] = (1, 2, 3, 4, 5)
    objects: tuple[int, ...] = (100, 200, 300, 400, 500)
    interest: float = 0.6
    moves_per_node: int = 64  # of SA, at each temperature
    moves_per_node_many: int = 16  # with many objects, where a move takes ten times as long
    optimum_nodes: int = 8
    optimum_cases: int = 8
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=48,
            seconds=8_000.0,
            loads=(1, 5),
            objects=(20,),
            moves_per_node=8,
            moves_per_node_many=2,
            optimum_nodes=6,
            optimum_cases=3,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    cases = list(_cases(parameters))
    rows: list[dict[str, Any]] = []
    found: dict[tuple[str, float], Contest] = {}
    for number, (figure, x, methods, moves, make) in enumerate(cases):

        def tell(text: str, done: float = number / (len(cases) + 1), at: str = figure) -> None:
            progress(f"{at}: {text}", done)

        def measured(
            make: Callable[[], TreeWorld] = make,
            methods: tuple[str, ...] = methods,
            moves: int = moves,
            tell: Callable[[str], None] = tell,
        ) -> tuple[Contest, float]:
            world = make()
            made = contest(world, parameters.seed, methods, Cooling(moves_per_node=moves), tell)
            return made, lower_bound(world.nodes, world.cargos) / made.model[SA]

        size = parameters.nodes, parameters.seconds, parameters.interest, min(parameters.objects)
        made, low = once(("static", parameters.seed, *size, figure, x, methods, moves), measured)
        found[figure, x] = made
        across = "objects" if figure == "4.5(c)" else "load"
        rows += made.rows(figure=figure, **{across: x})
        rows.append({"figure": figure, across: x, "method": "lower bound", "× SA": round(low, 3)})
    progress("optima of small instances", len(cases) / (len(cases) + 1))
    optima = _optima(parameters)
    return Report(
        "cosmos-trees-static",
        "Dissemination trees while nothing changes (COSMOS, figures 4.3, 4.5)",
        asdict(parameters),
        rows,
        goals=_goals(found, optima),
        beside=_beside(found),
        notes=NOTES,
        details={"optima": optima},
        figures=_figures(parameters, found),
    )


def _cases(
    p: Parameters,
) -> list[tuple[str, float, tuple[str, ...], int, Callable[[], TreeWorld]]]:
    found: list[tuple[str, float, tuple[str, ...], int, Callable[[], TreeWorld]]] = []
    for load in p.loads:

        def by_load(load: int = load) -> TreeWorld:
            return one_object_world(p.seed, p.nodes, p.seconds, load=load)

        def by_rate(load: int = load) -> TreeWorld:
            return one_object_world(p.seed, p.nodes, p.seconds, rate_load=load)

        def of_many(load: int = load) -> TreeWorld:
            few = min(p.objects)
            return many_objects_world(
                p.seed, p.nodes, p.seconds, few, load=load, interest=p.interest
            )

        found.append(("4.3(a)", load, METHODS, p.moves_per_node, by_load))
        found.append(("4.3(c)", load, SWEPT, p.moves_per_node, by_rate))
        found.append(("4.5(a)", load, METHODS, p.moves_per_node_many, of_many))
    for objects in p.objects:

        def by_objects(objects: int = objects) -> TreeWorld:
            return many_objects_world(p.seed, p.nodes, p.seconds, objects, interest=p.interest)

        found.append(("4.5(c)", objects, SWEPT, p.moves_per_node_many, by_objects))
    return found


def _optima(p: Parameters) -> list[dict[str, Any]]:
    """Greedy and SA beside the best tree that there is."""
    found = []
    for case in range(p.optimum_cases):
        load = p.loads[case % len(p.loads)]
        whole = drawn_nodes(p.seed, p.nodes, load)
        rng = np.random.default_rng([p.seed, 59, case])
        chosen = np.concatenate(([0], 1 + rng.permutation(p.nodes)[: p.optimum_nodes]))
        times = whole.filter_s[chosen], whole.send_s[chosen]
        nodes = Nodes(whole.delay_s[np.ix_(chosen, chosen)], *times)
        # As few nodes are idle at the source's rates: busier, so that there is something to choose.
        cargos = [one_object(drawn_rates(p.seed + case, p.optimum_nodes, 8.0 / load))]
        best = loss(nodes, cargos, (optimum(nodes, cargos[0]),))
        annealed = Annealing(Cooling(moves_per_node=p.moves_per_node)).build(nodes, cargos, case)
        found.append(
            {
                "case": case,
                "load": load,
                "SA": round(loss(nodes, cargos, annealed) / best, 4),
                "Greedy": round(loss(nodes, cargos, Greedy().build(nodes, cargos)) / best, 4),
                "lower bound": round(lower_bound(nodes, cargos) / best, 4),
            }
        )
    return found


def _of(found: dict[tuple[str, float], Contest], figure: str) -> dict[float, Contest]:
    return {x: made for (name, x), made in found.items() if name == figure}


def _goals(found: dict[tuple[str, float], Contest], optima: list[dict[str, Any]]) -> list[Goal]:
    goals = []
    for figure, what in (("4.3(a)", "one object"), ("4.5(a)", "many objects")):
        by_load = _of(found, figure)
        worst = max(m.ratio(GREEDY) for m in by_load.values())
        goals.append(
            Goal(f"Greedy, worst of all loads, {what}", round(worst, 3), 1.1, "× SA", False)
        )
        later = max(m.ratio(RANDOM + ADAPTIVE, PERIODS - 5, PERIODS) for m in by_load.values())
        goals.append(
            Goal(
                f"Random+Adaptive after {PERIODS} periods, {what}",
                round(later, 3),
                1.3,
                "× SA",
                False,
            )
        )
        ends = [
            m.ratio(RANDOM + ADAPTIVE, 4 * len(m.courses[SA].losses) // 5) for m in by_load.values()
        ]
        goals.append(
            Goal(
                f"Random+Adaptive in the last fifth, {what}",
                round(max(ends), 3),
                1.05,
                "× SA",
                False,
            )
        )
    worst_sa = max(case["SA"] for case in optima)
    goals.append(Goal("SA, worst small instance", worst_sa, 1.05, "× optimum", False))
    return goals


def _beside(found: dict[tuple[str, float], Contest]) -> list[Beside]:
    def told(figure: str, method: str) -> str:
        values = [m.ratio(method) for m in _of(found, figure).values()]
        return ", ".join(f"{v:.2f}" for v in values)

    def first(figure: str) -> str:
        return ", ".join(f"{m.ratio(RANDOM):.2f}" for m in _of(found, figure).values())

    def grows(method: str) -> str:
        by = list(_of(found, "4.5(c)").values())
        change = by[-1].courses[method].mean() / by[0].courses[method].mean() - 1
        return f"{change:+.0%}"

    return [
        Beside("4.3(a)", "Greedy performs as well as SA", f"{told('4.3(a)', GREEDY)} × SA"),
        Beside(
            "4.3(a)",
            "DiTA: more than 2 × SA, and worse with the load",
            f"{told('4.3(a)', DITA)} × SA",
            "the best of 16 fanouts and two orders counts",
        ),
        Beside(
            "4.3(a)",
            "Source-Based is the worst, and improves with the load",
            f"{told('4.3(a)', STAR)} × SA",
        ),
        Beside(
            "4.3(b)",
            "Random from over 3 and 4 × SA to 1.3 × in about 30 periods, and as good in the end",
            f"Random {first('4.3(a)')} × SA; see the goals and figure 4.3b",
        ),
        Beside(
            "4.3(c)",
            "Source-Based deteriorates rapidly with the rate, trees are not sensitive",
            f"Source-Based {told('4.3(c)', STAR)}, DiTA {told('4.3(c)', DITA)} × SA",
        ),
        Beside(
            "4.5(a)",
            "as with one object",
            f"Greedy {told('4.5(a)', GREEDY)}, DiTA {told('4.5(a)', DITA)} × SA",
            "DiTA builds one tree here as the others do; with a tree each see cosmos-trees-many",
        ),
        Beside(
            "4.5(c)",
            "from 100 to 500 objects the loss of trees grows by some 15 %, Source-Based's by 200 %",
            f"Greedy {grows(GREEDY)}, DiTA {grows(DITA)}, Source-Based {grows(STAR)}",
        ),
    ]


def _figures(p: Parameters, found: dict[tuple[str, float], Contest]) -> dict[str, Draw]:
    def by_method(figure: str, across: str) -> Draw:
        by = _of(found, figure)
        methods = list(next(iter(by.values())).courses)
        lines = {m: [[c.ratio(m) for c in by.values()]] for m in methods}
        return curves(list(by), lines, across=across, up="AvgLF, × SA", title="")

    def over_time(figure: str) -> Draw:
        by = _of(found, figure)
        lines = {}
        for load in (min(by), max(by)):
            for method in (RANDOM + ADAPTIVE, GREEDY + ADAPTIVE):
                periods = len(by[load].courses[SA].losses)
                lines[f"{method}, load {load:g}"] = [
                    [by[load].ratio(method, i, i + 5) for i in range(0, periods - 4, 5)]
                ]
        x = [5.0 * i for i in range(len(next(iter(lines.values()))[0]))]
        return curves(x, lines, across="adaptation periods", up="AvgLF, × SA", title="")

    return {
        "4.3a-load": by_method("4.3(a)", "load"),
        "4.3b-course": over_time("4.3(a)"),
        "4.3c-rate": by_method("4.3(c)", "rate"),
        "4.5a-load": by_method("4.5(a)", "load"),
        "4.5b-course": over_time("4.5(a)"),
        "4.5c-objects": by_method("4.5(c)", "objects"),
    }


NOTES = (
    "*AvgLF* is measured: rows flow through queues with exponential times, and a node loses the "
    "time in which a row that it needs is on its way. *By the model* is what (4.6) or (4.12) says "
    "of the tree at the end; near overload it says more, as it counts every row's delay and the "
    "measure counts no moment twice. *Lower bound* is beside SA's cost by the model. Adaptive "
    "trees know rates and times as nodes measure them in windows of 50 s, told when changed by a "
    "fifth.",
    "SA has the source's parameters for one object. With many objects it makes "
    "`moves_per_node_many` instead of 64 moves for each node at a temperature.",
)
