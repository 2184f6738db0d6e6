"""What trees cost to build, to adapt and to label rows for (COSMOS, figures 4.2, 4.8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.experiments.trees.world import many_objects_world, one_object_world
from thalweg.overlay.trees.transformations.choice import TRANSFORMATIONS, considered
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.seeing import view_of
from thalweg.placement.trees.view import View
from thalweg.plan.coherency.classes import KeyClasses, Start
from thalweg.plan.coherency.tolerance import Deviation, Update

CPU_SHARE = 0.05  # that adaptation may take (4.4.2)
DECISIONS = 100


@dataclass(frozen=True)
class Parameters:
    nodes: int = 256
    seconds: float = 20_000.0
    objects: tuple[int, ...] = (100, 200, 300, 400, 500)
    annealed: tuple[int, ...] = (100, 300, 500)
    long_moves: int = 64  # SA's first set of parameters
    short_moves: int = 16  # its second
    served: tuple[int, ...] = (10, 100, 1_000, 10_000)
    classes: tuple[int, ...] = (1, 100, 1_000, 10_000)
    rows: int = 2_000
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=48,
            seconds=2_000.0,
            objects=(20, 100),
            annealed=(20,),
            long_moves=4,
            short_moves=1,
            rows=300,
            classes=(1, 1_000),
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows: list[dict[str, Any]] = []
    for number, objects in enumerate(p.objects):
        progress(f"figure 4.8: {objects} objects", 0.9 * number / len(p.objects))
        rows += _building(p, objects)
    progress("decisions, and classes at the home", 0.92)
    rows += [_deciding(p, objects) for objects in (1, *p.objects)]
    rows += [_labelling(p, classes) for classes in p.classes]
    decision_us = max(
        r["µs"] for r in rows if r["what"] == "a decision, for each object" and r["objects"] > 1
    )
    periods = [DECISIONS * n * decision_us / 1e6 / CPU_SHARE for n in p.served]
    rows += [
        {"what": "shortest adaptation period, s", "objects": n, "CPU s": round(s, 3)}
        for n, s in zip(p.served, periods, strict=True)
    ]
    return Report(
        "cosmos-trees-time",
        "What trees cost to build and to adapt (COSMOS, figures 4.2, 4.8)",
        asdict(p),
        rows,
        goals=_goals(rows),
        beside=_beside(rows, periods, p),
        notes=NOTES,
        figures={
            "4.2-period": curves(
                p.served, {"5 % of the CPU": [periods]}, across="objects", up="seconds", title=""
            ),
            "4.8-time": _times(p, rows),
        },
    )


def _building(p: Parameters, objects: int) -> list[dict[str, Any]]:
    world = many_objects_world(p.seed, p.nodes, p.seconds, objects)
    found = []
    builders: dict[str, Any] = {"Greedy": Greedy()}
    if objects in p.annealed:
        builders["SA (1)"] = Annealing(Cooling(moves_per_node=p.long_moves))
        short = Cooling(moves_per_node=p.short_moves, cold=0.0015)
        builders["SA (2)"] = Annealing(short)
    for name, builder in builders.items():
        seconds, forest = _cpu_s(lambda b=builder: b.build(world.nodes, world.cargos, p.seed))
        cost = loss(world.nodes, world.cargos, forest)
        found.append(
            {
                "what": name,
                "objects": objects,
                "CPU s": round(seconds, 3),
                "AvgLF %": round(100 * cost, 5),
            }
        )
    return found


def _deciding(p: Parameters, objects: int) -> dict[str, Any]:
    """All decisions of the home of a greedy tree, in bulk."""
    seconds_s = min(p.seconds, 2_000.0)
    if objects == 1:
        world = one_object_world(p.seed, p.nodes, seconds_s)
    else:
        world = many_objects_world(p.seed, p.nodes, seconds_s, objects)
    forest = Greedy().build(world.nodes, world.cargos)
    ledger = Ledger(world.nodes, world.cargos, forest)
    view, _ = view_of(ledger, world.nodes, world.cargos[0], 0, 0)
    count = considered(view)

    def decide() -> None:
        # Every decision begins with fresh sums, as when reports have come.
        fresh = View(**{f: getattr(view, f) for f in View.__dataclass_fields__})
        for rule in TRANSFORMATIONS:
            columns = rule.candidates(fresh)
            if len(columns[0]):
                rule.delta(fresh, *columns)

    seconds = min(_cpu_s(decide)[0] for _ in range(5))
    each_us = seconds / count * 1e6
    return {
        "what": "a decision, for each object",
        "objects": objects,
        "decisions": count,
        "µs": round(each_us / objects, 4),
        "µs a decision": round(each_us, 2),
    }


def _labelling(p: Parameters, classes: int) -> dict[str, Any]:
    """A row at the home of a stream, for one key with many classes."""
    rng = np.random.default_rng([p.seed, 60])
    key = KeyClasses()
    for name, amount in enumerate(rng.uniform(0.01, 0.1, classes)):
        key.start(Start(name, Deviation(float(amount)), Update(0, 0, 50.0)))
    prices = (50 + np.cumsum(rng.normal(0, 0.005, p.rows))).tolist()

    def label() -> int:
        return sum(
            len(due.classes)
            for i, price in enumerate(prices, 1)
            for due in key.arrive(Update(i, i, price))
        )

    seconds, due = _cpu_s(label)
    return {
        "what": "labelling a row at the home",
        "classes": classes,
        "due a row": round(due / p.rows, 2),
        "µs": round(seconds / p.rows * 1e6, 2),
    }


def _cpu_s(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    greedy = [r for r in rows if r["what"] == "Greedy"][-1]
    alone, *others = (r["µs"] for r in rows if r["what"] == "a decision, for each object")
    return [
        Goal(f"Greedy, {greedy['objects']} objects", greedy["CPU s"], 1.0, "s of CPU", False),
        Goal("a decision in bulk, for each of many objects", max(others), 1.0, "µs", False),
        Goal("a decision in bulk, for one object", alone, 1.0, "µs", False),
    ]


def _beside(rows: list[dict[str, Any]], periods: list[float], p: Parameters) -> list[Beside]:
    by = {(r["what"], r["objects"]): r for r in rows if "AvgLF %" in r}
    told = []
    for objects in (n for n in p.annealed if n in p.objects):
        greedy = by["Greedy", objects]
        for name in ("SA (1)", "SA (2)"):
            sa = by[name, objects]
            cost, slower = (
                sa["AvgLF %"] / greedy["AvgLF %"],
                sa["CPU s"] / max(1e-9, greedy["CPU s"]),
            )
            told.append(
                f"{name}, {objects} objects: {cost:.2f} × Greedy's loss, {slower:,.0f} × its time"
            )
    return [
        Beside(
            "4.2",
            "0.6 µs a decision and object; 12 s between adaptations at 10,000 objects",
            f"{periods[-1]:.2f} s at {p.served[-1]:,} objects",
            "decisions are computed in bulk, in columns",
        ),
        Beside(
            "4.8",
            "Greedy is always faster; SA (2) costs more than 2 × Greedy, SA (1) is the best",
            "; ".join(told) or "SA was not run",
            "temperatures are in units of this project's, as the source gives none" if told else "",
        ),
    ]


def _times(p: Parameters, rows: list[dict[str, Any]]) -> Any:
    def draw(axes: Any) -> None:
        for name in ("Greedy", "SA (1)", "SA (2)"):
            kept = [r for r in rows if r["what"] == name]
            axes.plot([r["objects"] for r in kept], [r["CPU s"] for r in kept], ".-", label=name)
        axes.set(xlabel="objects", ylabel="CPU seconds", yscale="log")
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)

    return draw


NOTES = (
    "CPU time of one core. A decision is one possible transformation at the home of a greedy tree, "
    "which has the most children; all are looked at together, sums included. Labelling is what the "
    "home of a stream does for a row of one key, a random walk that makes about 2 % of the classes "
    "due.",
)
