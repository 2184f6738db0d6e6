"""Joins across sites: what changes (COSMOS, figures 5.12 to 5.14)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.experiments.swap.methods import (
    ALL,
    KNOWN,
    SWAP,
    Runs,
    against_static,
    run_all,
    told,
)
from thalweg.experiments.swap.setting import Conditions, Setting

SELECTIVITY, LINKS, LOADS = "5.12", "5.13", "5.14"


@dataclass(frozen=True)
class Parameters:
    scale: float = 1.0  # of rows (10,000, 100,000, 10,000) and of the moments of change
    links_swap_s: float = 250.0
    loads_swap_s: float = 70.0
    jobs: int = 6  # that share a loaded site's CPU: five threads beside the query
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(scale=0.1)


def settings(parameters: Parameters) -> dict[str, Setting]:
    many = parameters.jobs
    cases: dict[str, tuple[tuple[tuple[float, float], ...], tuple[Conditions, ...]]] = {
        SELECTIVITY: (((0.2, 2.0), (2.0, 0.2)), (Conditions(),)),
        LINKS: (
            ((0.5, 0.5),),
            (
                Conditions(slow_site="site3"),
                Conditions(parameters.links_swap_s, slow_site="site1"),
            ),
        ),
        LOADS: (
            ((0.1, 0.1),),
            (
                Conditions(jobs=(1, 1, many)),
                Conditions(parameters.loads_swap_s, jobs=(many, 1, 1)),
            ),
        ),
    }
    return {
        figure: Setting(sigma, conditions, scale=parameters.scale, seed=parameters.seed)
        for figure, (sigma, conditions) in cases.items()
    }


def run(parameters: Parameters, progress: Progress) -> Report:
    runs: Runs = {}
    rows: list[dict[str, Any]] = []
    for number, (figure, setting) in enumerate(settings(parameters).items()):
        progress(f"figure {figure}", number / 3)
        rows += run_all(figure, setting, ALL, runs)
    return Report(
        "swap-fluctuation",
        "Joins across sites: what changes (COSMOS, figures 5.12 to 5.14)",
        asdict(parameters),
        rows,
        goals=_goals(runs),
        beside=_beside(runs),
        notes=NOTES,
        figures={f"{f}-course": _course(runs, f) for f in (SELECTIVITY, LINKS, LOADS)},
    )


def _goals(runs: Runs) -> list[Goal]:
    figures = (SELECTIVITY, LINKS, LOADS)
    ahead = [
        Goal(
            f"SwAP over the better static plan, figure {f}",
            round(against_static(runs, f), 4),
            1.0,
            "",
            False,
        )
        for f in figures
    ]
    return ahead + [
        Goal(
            f"SwAP over the oracle, figure {f}",
            round(runs[f, SWAP].response_s / runs[f, KNOWN].response_s, 4),
            1.1,
            "",
            False,
        )
        for f in figures
    ]


def _beside(runs: Runs) -> list[Beside]:
    return [
        Beside(SELECTIVITY, "SwAP ahead of both static plans", told(runs, SELECTIVITY)),
        Beside(LINKS, "SwAP much more efficient than both static plans", told(runs, LINKS)),
        Beside(LOADS, "SwAP superior to both static plans", told(runs, LOADS)),
    ]


def _course(runs: Runs, figure: str) -> Draw:
    """SwAP's share of rows to site 1 first, second by second."""
    points = runs[figure, SWAP].course
    seconds, shares = [], []
    last = (0.0, 0, 0)
    step = max(1, len(points) // 100)
    for point in points[::step]:
        to_1, to_3 = point[1] - last[1], point[2] - last[2]
        if to_1 + to_3:
            seconds.append(point[0])
            shares.append(to_1 / (to_1 + to_3))
        last = point
    up = "rows of S to site 1 first"
    return curves(seconds, {SWAP: [shares]}, across="second", up=up, title=f"figure {figure}")


NOTES = (
    "5.12: R ⋈ S gives 20 % and S ⋈ T 200 % of S's first 50,000 rows, and the other way round for "
    "the rest. 5.13: both give 50 %; a row takes 10 ms to and from site 3, after 250 s to and from "
    "site 1. 5.14: both give 10 %; five other jobs share the CPU of site 3, after 70 s that of "
    "site 1.",
    "Response time: until the last row has been processed. The *oracle* knows selectivities, "
    "speeds and moments and divides rows accordingly; the *bound* is a linear programme over CPUs "
    "and links, which may even take S's rows in another order. It takes the selectivities that "
    "were asked for; those of the drawn rows differ a little.",
)
