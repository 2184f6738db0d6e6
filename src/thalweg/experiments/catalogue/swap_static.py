"""Joins across sites: what stays as it is (COSMOS, figures 5.5 to 5.11)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.experiments.swap.methods import (
    ALL,
    BOUND,
    KNOWN,
    R_FIRST,
    SWAP,
    Runs,
    against_static,
    run_all,
    told,
)
from thalweg.experiments.swap.setting import Conditions, Setting

SLOW = (Conditions(slow_site="site3"),)
LOADED = (Conditions(jobs=(1, 1, 2)),)  # a thread that spins
MANY, FEW, LINK, LOAD = "5.5 200 %", "5.5 20 %", "5.8", "5.11"


@dataclass(frozen=True)
class Parameters:
    scale: float = 1.0  # of R, S, T of 10,000, 100,000, 10,000 rows
    selectivities: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(scale=0.05, selectivities=(0.0, 0.3, 0.6, 0.9))


def run(parameters: Parameters, progress: Progress) -> Report:
    runs: Runs = {}
    rows: list[dict[str, Any]] = []
    cases: list[tuple[str, tuple[float, float], tuple[Conditions, ...], tuple[str, ...]]] = [
        (MANY, (2.0, 1.0), (Conditions(),), ALL),
        (FEW, (0.2, 1.0), (Conditions(),), ALL),
        (LINK, (0.1, 0.1), SLOW, ALL),
        (LOAD, (0.1, 0.1), LOADED, ALL),
    ]
    swept = [(_swept(s), (s, s), SLOW, (SWAP, R_FIRST, KNOWN)) for s in parameters.selectivities]
    for number, (figure, sigma, conditions, methods) in enumerate([*cases, *swept]):
        progress(f"figure {figure}", number / (len(cases) + len(swept)))
        setting = Setting((sigma,), conditions, scale=parameters.scale, seed=parameters.seed)
        rows += run_all(figure, setting, methods, runs)
    return Report(
        "swap-static",
        "Joins across sites: what stays as it is (COSMOS, figures 5.5 to 5.11)",
        asdict(parameters),
        rows,
        goals=_goals(parameters, runs),
        beside=_beside(parameters, runs),
        notes=NOTES,
        figures={
            "5.9-response": _curve(parameters, rows, "s", "response time, s"),
            "5.10-share": _curve(parameters, rows, "to site 1 first", "rows of S to site 1 first"),
        },
    )


def _swept(selectivity: float) -> str:
    return f"5.9 {selectivity:g}"


def _best_order(runs: Runs) -> dict[str, float]:
    """The share of rows that SwAP sent by the order of the better static plan (figure 5.6)."""
    return {MANY: 1 - runs[MANY, SWAP].share_1, FEW: runs[FEW, SWAP].share_1}


def _goals(parameters: Parameters, runs: Runs) -> list[Goal]:
    swept = max(against_static(runs, _swept(s)) for s in parameters.selectivities)
    explored = max(
        o.chosen["exploration"] / max(1, o.stable_rows) for (_, m), o in runs.items() if m == SWAP
    )
    return [
        *[
            Goal(
                f"SwAP over the better static plan, figure {figure}",
                round(against_static(runs, figure), 4),
                1.05,
                "",
                False,
            )
            for figure in (MANY, FEW, LINK, LOAD)
        ],
        Goal(
            "SwAP over the best static plan, figure 5.9, at worst", round(swept, 4), 1.05, "", False
        ),
        Goal(
            "rows by the best order, figure 5.6, at worst",
            round(min(_best_order(runs).values()), 4),
            0.8,
        ),
        Goal(
            "rows that explore, of those under stable statistics, at worst",
            round(explored, 4),
            0.02,
            "",
            False,
        ),
    ]


def _beside(parameters: Parameters, runs: Runs) -> list[Beside]:
    order = _best_order(runs)
    first, last = parameters.selectivities[0], parameters.selectivities[-1]

    def why(figure: str) -> str:
        chosen = runs[figure, SWAP].chosen
        return ", ".join(f"{k} {n / sum(chosen.values()):.0%}" for k, n in chosen.most_common())

    shares = [runs[_swept(s), SWAP].share_1 for s in (first, last)]
    grown = [
        runs[_swept(last), m].response_s - runs[_swept(first), m].response_s
        for m in (SWAP, R_FIRST)
    ]
    return [
        Beside(
            "5.5",
            "SwAP very close to the best static plan, the worst much slower",
            f"200 %: {told(runs, MANY)}; 20 %: {told(runs, FEW)}",
            "the bottleneck has the same work in either order; the worse plan only loses what the "
            "other site takes beyond it",
        ),
        Beside(
            "5.6",
            "nearly 80 % by the best order",
            f"200 %: {order[MANY]:.0%}; 20 %: {order[FEW]:.0%}",
            "once statistics are stable, only exploration and useful overflow leave the best order",
        ),
        Beside(
            "5.7",
            "200 %: nearly 90 % by back-pressure; 20 %: mostly by tickets",
            f"200 %: {why(MANY)}; 20 %: {why(FEW)}",
            "with 200 % and 100 % nobody holds tickets, and the source looks at queue lengths; "
            "here estimated selectivities are compared, tickets or not",
        ),
        Beside("5.8", "SwAP slightly ahead of the best static plan", told(runs, LINK)),
        Beside(
            "5.9",
            "both grow linearly, SwAP more slowly",
            f"from {first:g} to {last:g}: SwAP by {grown[0]:,.0f} s, "
            f"{R_FIRST} by {grown[1]:,.0f} s",
        ),
        Beside(
            "5.10",
            "nearly all to site 1 first at 0, about half towards 1",
            f"{shares[0]:.0%} at {first:g}, {shares[1]:.0%} at {last:g}",
            "at 0 and 0.1 not the link but site 1's CPU is the bottleneck, so that what site 3 "
            "takes over its slow link is a gain",
        ),
        Beside(
            "5.11",
            "SwAP approaches the best static plan",
            told(runs, LOAD),
            "the loaded site still has half of its CPU; SwAP uses it, a static plan does not",
        ),
    ]


def _curve(parameters: Parameters, rows: list[dict[str, Any]], column: str, up: str) -> Draw:
    lines = {}
    for method in (SWAP, R_FIRST, KNOWN, BOUND):
        found = {r["figure"]: r.get(column) for r in rows if r["method"] == method}
        points = [found.get(_swept(s)) for s in parameters.selectivities]
        if all(p is not None for p in points):
            lines[method] = [points]
    across = "selectivity of both joins"
    return curves(list(parameters.selectivities), lines, across=across, up=up, title="")


NOTES = (
    "Response time: until the last row has been processed. Static plans are the same sites with a "
    "fixed order. The *oracle* knows selectivities and speeds and divides rows between the orders "
    "accordingly; the *bound* is a linear programme over CPUs and links, below every routing. "
    "It takes the selectivities that were asked for; those of the drawn rows differ a little.",
    "Simulated: the protocol's own steps, with a time for each row read, joined, made and sent "
    "(`experiments/swap/setting.py`). R, S and T are read as fast as the sites allow.",
)
