"""Adapting a distribution that was made without statistics, round by round (COSMOS, fig. 3.9)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.case import Scale
from thalweg.experiments.cosmos.lines import by_method, column
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw
from thalweg.placement.arrays import ints
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.redistribution import Adaptation, redistribute

STILL, ADAPTIVE, ACCURATE = "NA-inaccurate", "A-inaccurate", "A-accurate"
ALONE = "A-inaccurate, Algorithm 3.3 alone"  # not distributed anew, and no exchange at the root
METHODS = (STILL, ADAPTIVE, ALONE, ACCURATE)
INTERVAL_S = 200


@dataclass(frozen=True)
class Parameters(Scale):
    queries: int = 30_000
    rounds: int = 6
    k: int = 4

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=5_000, rounds=3)


def run(parameters: Parameters, progress: Progress) -> Report:
    now = parameters.case(parameters.setting(), parameters.queries, parameters.k)
    settings = now.settings
    rng = np.random.default_rng([parameters.seed, 9])
    random = ints(rng.integers(parameters.providers, size=parameters.queries))
    mappings = {
        STILL: random,
        ADAPTIVE: random,
        ALONE: random,
        ACCURATE: distribute(now.system, now.drawn.proxy, settings),
    }
    rows: list[dict[str, Any]] = []
    for number in range(parameters.rounds + 1):
        for name, mapping in mappings.items():
            progress(f"round {number}: {name}", number / (parameters.rounds + 1))
            after = mapping
            if number and name != STILL:
                seeded = replace(settings, seed=parameters.seed + number, exchange=name != ALONE)
                adaptation = Adaptation(seeded, anew=name != ALONE)
                after = redistribute(now.system, mapping, adaptation)
            mappings[name] = after
            moved = round(float((after != mapping).mean()), 4)
            row = {"s": number * INTERVAL_S, "method": name, **now.judge(after).row}
            rows.append({**row, "moved": moved})
    return Report(
        "cosmos-adaptation",
        "Adapting to inaccurate statistics (COSMOS, figure 3.9)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "cost": _curve(rows, "WEC 10⁹", "weighted edge cut, 10⁹"),
            "busiest": _curve(rows, "busiest", "largest load, of its share"),
        },
    )


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    start, best = column(rows, STILL, "WEC 10⁹")[0], column(rows, ACCURATE, "WEC 10⁹")[0]
    goals = [
        Goal(
            f"{name}: closed of the distance between random places and accurate statistics",
            round((start - column(rows, name, "WEC 10⁹")[-1]) / (start - best), 4),
            least,
        )
        for name, least in ((ADAPTIVE, 0.9), (ALONE, 0.8))
    ]
    busiest = column(rows, ADAPTIVE, "busiest")[-1]
    return [*goals, Goal("busiest at the end, of its share", busiest, 1.1 + 1e-6, "", False)]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    cut = {n: column(rows, n, "WEC 10⁹") for n in METHODS}
    busiest = column(rows, ADAPTIVE, "busiest")
    return [
        Beside(
            "3.9(a)",
            "the adaptive algorithm gradually comes near to that with accurate statistics",
            f"WEC against accurate: {cut[STILL][0] / cut[ACCURATE][0]:.3f} at the start, "
            + ", ".join(
                f"{a / b:.3f}" for a, b in zip(cut[ADAPTIVE][1:], cut[ACCURATE][1:], strict=True)
            )
            + " after each round",
            "where the root has hardly more than chance would give, it distributes everything anew "
            "at once, and later rounds find little to do; in the source each round only moves "
            "some, as in the row of Algorithm 3.3 alone: "
            + ", ".join(f"{a / cut[ACCURATE][0]:.3f}" for a in cut[ALONE][1:]),
        ),
        Beside(
            "3.9(b)",
            "the load is balanced on the way",
            "busiest provider, of its share, by round: " + ", ".join(f"{b:.3f}" for b in busiest),
            "standard deviations over the mean, as the source draws them: "
            + ", ".join(f"{s:.2f}" for s in column(rows, ADAPTIVE, "load spread"))
            + " by round; they rise, because load counts only above the bound of 1.1, and room "
            "below it is used for a smaller cut",
        ),
    ]


def _curve(rows: list[dict[str, Any]], name: str, up: str) -> Draw:
    seconds = sorted({row["s"] for row in rows})
    return by_method(rows, METHODS, seconds, name, across="seconds", up=up)


NOTES = ("Without statistics, queries are at random providers. A round takes place every 200 s.",)
