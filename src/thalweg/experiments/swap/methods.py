"""Who is compared: SwAP's policies, the two static plans, an oracle and a bound."""

from __future__ import annotations

from typing import Any

from thalweg.adapt.swap.policies.back_pressure import BackPressure
from thalweg.adapt.swap.policies.both import LotteryAndBackPressure
from thalweg.adapt.swap.policies.fixed import Fixed
from thalweg.adapt.swap.policies.lottery import Lottery
from thalweg.experiments.swap.bound import bound_s
from thalweg.experiments.swap.running import ORACLE, Method, Outcome, played
from thalweg.experiments.swap.setting import R, Setting, T

SWAP, R_FIRST, T_FIRST = "SwAP", "R ⋈ S first", "S ⋈ T first"
LOTTERY, PRESSURE, KNOWN, BOUND = "lottery only", "back-pressure only", "oracle", "bound"
STATIC = (R_FIRST, T_FIRST)
METHODS: dict[str, Method] = {
    SWAP: LotteryAndBackPressure,
    R_FIRST: lambda: Fixed([R, T]),
    T_FIRST: lambda: Fixed([T, R]),
    LOTTERY: Lottery,
    PRESSURE: BackPressure,
    KNOWN: ORACLE,
}
ALL = tuple(METHODS)

Runs = dict[tuple[str, str], Outcome]  # by figure and method


def run_all(
    figure: str, setting: Setting, methods: tuple[str, ...], runs: Runs
) -> list[dict[str, Any]]:
    """A row for each method, and one for the bound."""
    rows = []
    for method in methods:
        outcome = runs[figure, method] = played(setting, METHODS[method])
        rows.append(_row(figure, method, outcome))
    rows.append({"figure": figure, "method": BOUND, "s": round(bound_s(setting), 1)})
    return rows


def _row(figure: str, method: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "figure": figure,
        "method": method,
        "s": round(outcome.response_s, 1),
        "to site 1 first": round(outcome.share_1, 3),
        "results": outcome.results,
    }


def best_static(runs: Runs, figure: str) -> float:
    return min(runs[figure, m].response_s for m in STATIC if (figure, m) in runs)


def against_static(runs: Runs, figure: str) -> float:
    return runs[figure, SWAP].response_s / best_static(runs, figure)


def told(runs: Runs, figure: str) -> str:
    parts = [f"{m} {o.response_s:,.0f} s" for (f, m), o in runs.items() if f == figure]
    return ", ".join(parts)
