"""Load that is filtered, and how many partners balance a site (COSMOS, figures 6.3, 6.5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.adapt.partners.low_pass import filtered, least_alpha, windows_to_reflect
from thalweg.experiments.fragments.courses import (
    STATIC,
    mean,
    partners,
    play,
    seconds_to_converge,
)
from thalweg.experiments.fragments.workload import Sizes, draw
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.arrays import Floats


@dataclass(frozen=True)
class Parameters:
    nodes: int = 32
    queries: int = 500
    partners: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 8)
    seconds: int = 60
    last_s: int = 10
    theta: float = 0.95
    filter_window_ms: int = 10
    alpha: float = 0.9
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=8, queries=100, partners=(0, 1, 4), seconds=25, last_s=5)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows, lines = [], {}
    sizes = Sizes(nodes=p.nodes, queries=p.queries, theta=p.theta)
    work = draw(sizes, p.seed)
    for i, max1 in enumerate(p.partners):
        progress(f"max₁ = {max1}", i / len(p.partners))
        course = play(sizes, partners(max1) if max1 else STATIC, p.seconds, p.seed, work=work)
        seen, spread = course.seen, course.seen.stdev()
        end = p.seconds
        final = mean(spread, end - p.last_s, end)
        lines[max1] = spread
        rows.append(
            {
                "max₁": max1,
                "STDEV of loads": round(final, 4),
                "mean load": round(float(np.mean(seen.loads[-1])), 3),
                "busiest": round(float(np.max(seen.loads[-1])), 3),
                "PR_max": round(mean(seen.pr_max, end - p.last_s, end), 1),
                "PR, 99 %": round(mean(seen.pr_p99, end - p.last_s, end), 1),
                "converged after s": seconds_to_converge(spread, final) if max1 else 0,
                "fragments moved": sum(seen.moves),
                "Mbit/s": round(mean(seen.sent_bps, end - p.last_s, end) / 1e6, 1),
            }
        )
    raw, smooth = mm1_course(p)
    return Report(
        "fragments-partners",
        "How many partners balance a site (COSMOS, figures 6.3, 6.5)",
        asdict(p),
        rows,
        goals=_goals(p, rows, raw, smooth),
        beside=_beside(p, rows, raw, smooth),
        notes=NOTES,
        figures=_figures(p, rows, lines, raw, smooth),
    )


def mm1_course(p: Parameters) -> tuple[Floats, Floats]:
    """Figure 6.3: the load of an M/M/1 node, window by window, which rises by 1.4 at 5 s."""
    rng = np.random.default_rng(p.seed)
    window, half = p.filter_window_ms, 5_000
    arrivals: list[Floats] = []
    for begin, load in ((0, 0.5), (half, 0.7)):  # a tuple takes a ms
        arrivals.append(begin + np.sort(rng.random(rng.poisson(load * half)) * half))
    at = np.concatenate(arrivals)
    service = rng.standard_exponential(len(at))
    before = np.cumsum(service) - service
    starts = np.maximum.accumulate(at - before) + before
    edges = np.arange(0, 2 * half + window, window)
    done = np.concatenate([[0.0], np.cumsum(service)])
    # Work done up to each edge: all of the earlier jobs, and a part of the one at work.
    begun = np.searchsorted(starts, edges, side="right")
    last = np.maximum(begun - 1, 0)
    upto = done[last] + np.clip(edges - starts[last], 0.0, service[last])
    raw = np.diff(np.where(begun > 0, upto, 0.0)) / window
    smooth = np.empty(len(raw))
    estimate = 0.5
    for i, collected in enumerate(raw.tolist()):
        estimate = filtered(p.alpha, estimate, collected)
        smooth[i] = estimate
    return raw, smooth


def _row(rows: list[dict[str, Any]], max1: int) -> dict[str, Any]:
    return next(r for r in rows if r["max₁"] == max1)


def _goals(p: Parameters, rows: list[dict[str, Any]], raw: Floats, smooth: Floats) -> list[Goal]:
    four, most, none = _row(rows, 4), rows[-1], _row(rows, 0)
    half = len(raw) // 2
    return [
        Goal(
            "STDEV of loads with max₁ = 4 over that with none",
            round(four["STDEV of loads"] / none["STDEV of loads"], 3),
            0.25,
            at_least=False,
        ),
        Goal(
            "busiest node with max₁ = 4 over the mean",
            round(four["busiest"] / four["mean load"], 3),
            1.2,
            at_least=False,
        ),
        Goal(
            "PR_max with max₁ = 4 over that with the most partners",
            round(four["PR_max"] / most["PR_max"], 3),
            1.25,
            at_least=False,
        ),
        Goal(
            "deviation of the filtered load over that of the collected one, before the change",
            round(float(smooth[half // 10 : half].std() / raw[half // 10 : half].std()), 3),
            0.33,
            at_least=False,
        ),
    ]


def _beside(p: Parameters, rows: list[dict[str, Any]], raw: Floats, smooth: Floats) -> list[Beside]:
    half = len(raw) // 2
    told = "; ".join(f"{r['max₁']}: {r['STDEV of loads']:.3f}" for r in rows)
    ratios = "; ".join(f"{r['max₁']}: {r['PR_max']:,.0f}" for r in rows)
    times = "; ".join(f"{r['max₁']}: {r['converged after s']}" for r in rows if r["max₁"])
    return [
        Beside(
            "6.3",
            "filtered, the load swings less; 10 and 14 tuples/ms at 1 ms each, α = 0.9, τ = 10 ms",
            f"deviation {raw[:half].std():.3f} collected, {smooth[half // 10 : half].std():.3f} "
            "filtered, before the change",
            "10 tuples/ms at 1 ms each would be a load of 10: loads of 0.5 and 0.7 are taken, "
            "which rise by the same factor",
        ),
        Beside(
            "6.2.3",
            "m₁ = m₂ = 1, l = 2, κ = 1.2: α ≥ 0.9; 92 % of a doubled load after 10 windows at "
            "α = 0.9 and 20 at 0.95",
            f"α ≥ {least_alpha(1, 1, 2.0, 1.2):.3f}; {windows_to_reflect(0.9, 2.0, 0.92)} and "
            f"{windows_to_reflect(0.95, 2.0, 0.92)} windows",
            "the source rounds: its inequality is 2 − α² ≤ κ here, so α ≥ √0.8; and k = 1 − 1/2e "
            "is 0.816, not 0.92: with 0.816 it is 10 and 20 windows",
        ),
        Beside("6.5(a)", "well balanced from max₁ = 4 on, little to gain beyond", f"STDEV {told}"),
        Beside("6.5(b)", "PR_max similar from max₁ = 4 on", ratios, _why_ratio(rows)),
        Beside("6.5(c)", "not much difference in the time to converge", f"seconds {times}"),
    ]


def _why_ratio(rows: list[dict[str, Any]]) -> str:
    if _row(rows, 0)["PR_max"] < 1_000:
        return ""
    return (
        "without balancing the most popular streams' nodes get more work than they can do, and "
        "their queues grow as long as the run lasts"
    )


def _figures(
    p: Parameters,
    rows: list[dict[str, Any]],
    lines: dict[int, list[float]],
    raw: Floats,
    smooth: Floats,
) -> dict[str, Any]:
    windows = [i * p.filter_window_ms / 1000 for i in range(len(raw))]
    x = [r["max₁"] for r in rows]
    seconds = [float(s + 1) for s in range(p.seconds)]
    return {
        "6.3-filter": curves(
            windows,
            {"collected": [raw.tolist()], f"filtered, α = {p.alpha:g}": [smooth.tolist()]},
            across="seconds",
            up="load",
            title="",
        ),
        "6.5a-stdev": curves(
            x,
            {"STDEV of loads": [[r["STDEV of loads"] for r in rows]]},
            across="max₁",
            up="STDEV",
            title="",
        ),
        "6.5c-course": curves(
            seconds,
            {f"max₁ = {m}": [line] for m, line in lines.items()},
            across="seconds",
            up="STDEV of loads",
            title="",
        ),
    }


NOTES = (
    "Three streams a node; half of the queries are over two streams and half over three, with four "
    "filters a stream and a join less than streams: 500 queries have 5,750 operators in 1,250 "
    "fragments. The network is one medium of 100 Mbit/s that all share, 0.1 ms a hop besides. "
    "Every node runs the protocol of `adapt/partners`; all queues and tuples are simulated.",
    "Beyond the source: a fragment that moved rests for ten rounds, a node also asks when the "
    "busiest partner stands out, and one random node in three rounds is probed "
    "(docs/fragments.md).",
)
