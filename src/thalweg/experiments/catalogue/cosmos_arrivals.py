"""New queries arrive while others run: cost and balance (COSMOS, figure 3.10)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.case import Case, Scale
from thalweg.experiments.cosmos.lines import by_method, column
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw
from thalweg.placement.arrays import Ints, ints
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.redistribution import Adaptation, redistribute
from thalweg.placement.cosmos.routing import Router
from thalweg.placement.cosmos.system import Settings
from thalweg.placement.cosmos.workload import Drawn

RANDOM, ONLINE, BOUNDED, ADAPTIVE = "random", "online", "online, bounded", "online, adaptive"
METHODS = (RANDOM, ONLINE, BOUNDED, ADAPTIVE)
ANEW = "all distributed anew"  # at the end, as a yardstick
INTERVAL_S = 200


@dataclass(frozen=True)
class Parameters(Scale):
    queries: int = 30_000
    arriving: int = 1_500  # at the start of each interval
    intervals: int = 10
    k: int = 4

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=5_000, arriving=250, intervals=3)


def run(parameters: Parameters, progress: Progress) -> Report:
    progress("the initial distribution", 0.0)
    now = parameters.case(parameters.setting(), parameters.queries, parameters.k)
    settings = now.settings
    first = distribute(now.system, now.drawn.proxy, settings)
    mappings = dict.fromkeys(METHODS, first)
    rows = [{"s": 0, "method": name, **now.judge(first).row, "moved": 0.0} for name in METHODS]
    for number in range(1, parameters.intervals + 1):
        count = len(now.system.queries)
        later, new = now.more(parameters.arriving, count, parameters.seed)
        for name in METHODS:
            progress(f"interval {number}: {name}", number / (parameters.intervals + 1))
            routed = _routed(now, later, new, name, mappings[name], settings, number)
            moved = float((routed[:count] != mappings[name]).mean())
            mappings[name] = routed
            rows.append(
                {
                    "s": number * INTERVAL_S,
                    "method": name,
                    **later.judge(routed).row,
                    "moved": round(moved, 4),
                }
            )
        now = later
    progress("everything distributed anew", 1.0)
    anew = now.judge(distribute(now.system, now.proxy, settings)).row
    rows.append({"s": parameters.intervals * INTERVAL_S, "method": ANEW, **anew, "moved": 1.0})
    return Report(
        "cosmos-arrivals",
        "New queries arrive (COSMOS, figure 3.10)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "cost": _curve(rows, "WEC 10⁹", "weighted edge cut, 10⁹"),
            "spread": _curve(rows, "load spread", "standard deviation of loads, of the mean"),
        },
    )


def _routed(
    now: Case, later: Case, new: Drawn, name: str, before: Ints, settings: Settings, number: int
) -> Ints:
    if name == RANDOM:
        rng = np.random.default_rng([settings.seed, 10, number])
        chosen = rng.integers(len(now.system.network), size=len(new.queries))
        return ints(np.concatenate([before, chosen]))
    balance = None if name == ONLINE else settings.balance
    routed = Router(now.system, before, balance).route(new.queries)
    found = ints(np.concatenate([before, routed]))
    if name != ADAPTIVE:
        return found
    adaptation = Adaptation(replace(settings, seed=settings.seed + number))
    return redistribute(later.system, found, adaptation)


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    [best] = column(rows, ANEW, "WEC 10⁹")
    moved = sum(column(rows, ADAPTIVE, "moved"))
    return [
        Goal(
            "WEC of online, adaptive at the end against all distributed anew",
            round(column(rows, ADAPTIVE, "WEC 10⁹")[-1] / best, 4),
            1.05,
            "",
            False,
        ),
        Goal(
            "busiest of online, adaptive, of its share, at worst",
            max(column(rows, ADAPTIVE, "busiest")),
            1.1 + 1e-6,
            "",
            False,
        ),
        Goal("migrations of a query, in all intervals", round(moved, 4), 0.5, "", False),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    cut = {name: column(rows, name, "WEC 10⁹") for name in METHODS}
    told = ", ".join(f"{name} {cut[name][-1] / cut[RANDOM][-1]:.3f}" for name in METHODS[1:])
    [anew] = column(rows, ANEW, "WEC 10⁹")
    uneven = ", ".join(
        f"{name} {column(rows, name, 'load spread')[-1]:.3f}"
        f" (busiest {column(rows, name, 'busiest')[-1]:.2f})"
        for name in METHODS
    )
    return [
        Beside(
            "3.10(a)",
            "random gets worse, online stays low, online-adaptive is the best",
            f"WEC at the end, of random's: {told}; {ANEW}: {anew / cut[RANDOM][-1]:.3f}",
            "without a bound, online puts queries together where they cost least (the busiest has "
            "many times its share), and so costs less than any distribution that keeps the bound",
        ),
        Beside(
            "3.10(b)",
            "online gets out of balance, online-adaptive does not",
            f"spread of loads at the end: {uneven}",
            "a distribution that uses the bound leaves remote providers idle, which is most of its "
            "spread",
        ),
    ]


def _curve(rows: list[dict[str, Any]], name: str, up: str) -> Draw:
    seconds = sorted({row["s"] for row in rows})
    return by_method(rows, METHODS, seconds, name, across="seconds", up=up)


NOTES = (
    "*Online* is routing as the source has it, without a look at load; *bounded* only considers "
    "providers with room; *adaptive* is bounded, with a round of redistribution in each interval.",
)
