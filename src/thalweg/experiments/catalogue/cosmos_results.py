"""How much the rate of results, of which the source says nothing, decides (COSMOS 3.4).

Results go to the proxies one by one, substreams to many queries at once. The more a query gives of
what it reads, the better it stays at its proxy, and the less there is for a distribution to gain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.case import Case, Scale
from thalweg.experiments.cosmos.judging import Verdict
from thalweg.experiments.cosmos.yardstick import informed as informed_metis
from thalweg.experiments.cosmos.yardstick import is_available
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.arrays import Ints
from thalweg.placement.cosmos.centralised import greedy
from thalweg.placement.cosmos.distribution import distribute

NAIVE, GREEDY, HIERARCHICAL = "naive", "greedy", "hierarchical"
METIS = "METIS, same information and last pass"


@dataclass(frozen=True)
class Parameters(Scale):
    queries: int = 20_000
    result_shares: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)  # of a query's input
    k: int = 4

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=3_000, result_shares=(0.01, 0.1), providers=64)


def run(parameters: Parameters, progress: Progress) -> Report:
    made = parameters.setting()
    rows: list[dict[str, Any]] = []
    for i, share in enumerate(parameters.result_shares):
        progress(f"results of {share:g}", i / len(parameters.result_shares))
        case = parameters.case(made, parameters.queries, parameters.k, result_share=share)
        for name, mapping in _mappings(case).items():
            rows.append({"result share": share, "method": name, **_row(case, mapping)})
    return Report(
        "cosmos-results",
        "Query distribution by the rate of results (COSMOS 3.4)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "delivered": curves(
                parameters.result_shares,
                {name: [_column(rows, name, "all 10⁶")] for name in _methods(rows)},
                across="rate of results, of a query's input",
                up="delivered substreams and results, 10⁶",
                title=f"{parameters.queries:,} queries",
            )
        },
    )


def _mappings(of: Case) -> dict[str, Ints]:
    found = {
        NAIVE: of.drawn.proxy,
        GREEDY: greedy(of.system, of.settings),
        HIERARCHICAL: distribute(of.system, of.drawn.proxy, of.settings),
    }
    if is_available():
        found[METIS] = informed_metis(of.system, of.settings)
    return found


def _row(of: Case, mapping: Ints) -> dict[str, Any]:
    verdict: Verdict = of.judge(mapping)
    return {
        **verdict.row,
        "all 10⁶": round((verdict.delivered + verdict.results) / 1e6, 2),
        "at their proxies": round(float(np.mean(mapping == of.drawn.proxy)), 4),
    }


def _methods(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in rows))


def _column(rows: list[dict[str, Any]], method: str, name: str) -> list[float]:
    return [row[name] for row in rows if row["method"] == method]


def _saved(rows: list[dict[str, Any]], method: str, name: str) -> list[float]:
    pairs = zip(_column(rows, method, name), _column(rows, NAIVE, name), strict=True)
    return [1 - ours / naive for ours, naive in pairs]


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    """One who does not look at results at all would miss these from some rate on."""
    shares = _column(rows, HIERARCHICAL, "result share")
    pairs = zip(shares, _saved(rows, HIERARCHICAL, "all 10⁶"), strict=True)
    return [
        Goal(f"results of {share:g}: saved of what naive sends in all", saved, 0.0)
        for share, saved in pairs
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    shares = _column(rows, HIERARCHICAL, "result share")

    def told(method: str, name: str) -> str:
        values = zip(shares, _saved(rows, method, name), strict=True)
        return ", ".join(f"{share:g}: {saved:+.1%}" for share, saved in values)

    found = [
        Beside(
            "3.4",
            "no rate of results; the way from a provider to its local users is left out",
            f"saved of naive's WEC, by the rate of results: {told(HIERARCHICAL, 'WEC 10⁹')}",
        ),
        Beside(
            "3.4",
            "the cost of results is not told",
            "saved of what naive sends in all, substreams once over each link and results one by "
            f"one: {told(HIERARCHICAL, 'all 10⁶')}",
            "WEC counts every pair of queries that share a substream, so it hides what results "
            "cost: a mapping by WEC sends results far for a cut that no link carries twice",
        ),
    ]
    if METIS in _methods(rows):
        found.append(
            Beside(
                "3.4",
                "no outside partitioner",
                f"METIS, saved of naive's WEC: {told(METIS, 'WEC 10⁹')}; of all that is sent: "
                f"{told(METIS, 'all 10⁶')}",
            )
        )
    return found


NOTES = (
    "Naive leaves every query at its proxy and sends no results at all. *All* is what links carry: "
    "each substream once over each link of its tree, and every query's results to its proxy.",
)
