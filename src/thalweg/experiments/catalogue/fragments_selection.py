"""Which fragments are given away, and what that costs in traffic (COSMOS, figures 6.6, 6.7)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.fragments.courses import (
    STATIC,
    Change,
    Course,
    mean,
    partners,
    perturbed,
    play,
)
from thalweg.experiments.fragments.workload import Sizes
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves

FLOW, INTERMEDIATE, ELEMENTARY = "flow-aware", "intermediate", "elementary"
HOMING = "flow-aware, homing"
ORDERS = (FLOW, INTERMEDIATE, ELEMENTARY)


@dataclass(frozen=True)
class Parameters:
    nodes: int = 32
    queries: int = 500
    max1: int = 5
    filters: tuple[int, ...] = (1, 2, 3, 4)  # figure 6.6: operators of a fragment, but for joins
    seconds: int = 60
    theta: float = 0.95
    faster_from_s: int = 20  # figure 6.7
    faster_to_s: int = 50
    seconds_faster: int = 90
    perturbed: int = 4
    factor: float = 3.0
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=8,
            queries=100,
            filters=(1, 4),
            seconds=20,
            faster_from_s=5,
            faster_to_s=20,
            seconds_faster=40,
            perturbed=1,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows: list[dict[str, Any]] = []
    runs = 2 * len(p.filters) + 5
    for i, filters in enumerate(p.filters):
        for j, by_operator in enumerate((False, True)):
            what = "operators" if by_operator else "fragments"
            progress(f"6.6: {filters} filters, {what} move", (2 * i + j) / runs)
            rows.append(_limit(p, filters, by_operator))
    courses: dict[str, Course] = {}
    for i, order in enumerate(("static", *ORDERS, HOMING)):
        progress(f"6.7: {order}", (2 * len(p.filters) + i) / runs)
        courses[order] = _flows(p, order)
        rows.append(_phases(p, order, courses))
    return Report(
        "fragments-selection",
        "Which fragments are given away (COSMOS, figures 6.6, 6.7)",
        asdict(p),
        rows,
        goals=_goals(p, rows),
        beside=_beside(p, rows),
        notes=NOTES,
        figures={"6.7-transfer": _figure(p, courses)},
    )


def _limit(p: Parameters, filters: int, by_operator: bool) -> dict[str, Any]:
    sizes = Sizes(p.nodes, queries=p.queries, filters=filters, theta=p.theta)
    if by_operator:
        sizes = Sizes(p.nodes, queries=p.queries, filters=filters, theta=p.theta, by_operator=True)
    order = ELEMENTARY if by_operator else FLOW
    seen = play(sizes, partners(p.max1, order=order, homing=False), p.seconds, p.seed).seen
    tail = p.seconds - p.seconds // 6
    return {
        "figure": "6.6",
        "strategy": "OP-based" if by_operator else "QF-based",
        "filters": filters,
        "PR_max": round(mean(seen.pr_max, 0, p.seconds), 1),
        "PR_max at the end": round(mean(seen.pr_max, tail, p.seconds), 1),
        "Mbit/s": round(mean(seen.sent_bps, 0, p.seconds) / 1e6, 1),
        "Mbit/s at the end": round(mean(seen.sent_bps, tail, p.seconds) / 1e6, 1),
        "moved": sum(seen.moves),
    }


def _flows(p: Parameters, order: str) -> Course:
    chosen = perturbed(p.perturbed, p.nodes, p.seed)
    changes = (
        Change(p.faster_from_s, chosen, p.factor),
        Change(p.faster_to_s, chosen, 1.0),
    )
    if order == "static":
        settings = STATIC
    elif order == HOMING:
        settings = partners(p.max1, order=FLOW)
    else:
        settings = partners(p.max1, order=order, homing=False)
    sizes = Sizes(p.nodes, queries=p.queries, theta=0.0)
    return play(sizes, settings, p.seconds_faster, p.seed, changes)


def _phases(p: Parameters, order: str, courses: dict[str, Course]) -> dict[str, Any]:
    seen, static = courses[order].seen, courses["static"].seen
    extra = [a - b for a, b in zip(seen.sent_bps, static.sent_bps, strict=True)]
    third = (p.faster_to_s - p.faster_from_s) // 3
    quarter = (p.seconds_faster - p.faster_to_s) // 4
    return {
        "figure": "6.7",
        "strategy": order,
        "extra before, Mbit/s": round(mean(extra, p.faster_from_s // 2, p.faster_from_s) / 1e6, 3),
        "during": round(mean(extra, p.faster_to_s - third, p.faster_to_s) / 1e6, 3),
        "after": round(mean(extra, p.seconds_faster - quarter, p.seconds_faster) / 1e6, 3),
        "PR_max": round(mean(seen.pr_max, 0, p.seconds_faster), 1),
        "PR_max at the end": round(
            mean(seen.pr_max, p.seconds_faster - quarter, p.seconds_faster), 1
        ),
        "moved": sum(seen.moves),
        "STDEV of loads during": round(mean(seen.stdev(), p.faster_to_s - third, p.faster_to_s), 4),
    }


def _of(rows: list[dict[str, Any]], figure: str, strategy: str, **more: Any) -> dict[str, Any]:
    wanted = {"figure": figure, "strategy": strategy, **more}
    return next(r for r in rows if all(r.get(k) == v for k, v in wanted.items()))


def _goals(p: Parameters, rows: list[dict[str, Any]]) -> list[Goal]:
    flow, mid, low = (_of(rows, "6.7", o) for o in ORDERS)
    most = p.filters[-1]
    qf, op = (_of(rows, "6.6", s, filters=most) for s in ("QF-based", "OP-based"))
    goals = [
        Goal(
            f"extra transfer, flow-aware over {name}, {phase.split(',')[0]}",
            round(flow[phase] / max(other[phase], 1e-9), 3),
            1.0,
            at_least=False,
        )
        for phase in ("during", "after")
        for name, other in ((INTERMEDIATE, mid), (ELEMENTARY, low))
    ]
    goals += [
        Goal(
            f"what {name} keeps of its extra transfer after the perturbation",
            round(_kept(_of(rows, "6.7", name)), 3),
            0.1,
            at_least=False,
        )
        for name in (FLOW, HOMING)
    ]
    goals += [
        Goal(
            f"transfer of OP-based over QF-based with {most} filters",
            round(op["Mbit/s at the end"] / qf["Mbit/s at the end"], 2),
            1.5,
        ),
        Goal(
            "PR_max of flow-aware over the best of the other two",
            round(flow["PR_max"] / min(mid["PR_max"], low["PR_max"]), 3),
            1.25,
            at_least=False,
        ),
    ]
    return goals


def _kept(row: dict[str, Any]) -> float:
    before = row["extra before, Mbit/s"]
    kept: float = (row["after"] - before) / max(row["during"] - before, 1e-9)
    return kept


def _beside(p: Parameters, rows: list[dict[str, Any]]) -> list[Beside]:
    def line(column: str) -> str:
        return "; ".join(
            f"{r['strategy']} {r['filters']}: {r[column]:,.0f}"
            for r in rows
            if r["figure"] == "6.6"
        )

    def phases(order: str) -> str:
        r = _of(rows, "6.7", order)
        return (
            f"{order} {r['extra before, Mbit/s']:.1f} before, {r['during']:.1f} during, "
            f"{r['after']:.1f} after"
        )

    ratios = "; ".join(f"{r['strategy']} {r['PR_max']:,.0f}" for r in rows if r["figure"] == "6.7")
    return [
        Beside(
            "6.6(a)",
            "PR_max alike up to two operators a fragment; OP-based very high from three on",
            f"at the end: {line('PR_max at the end')}",
            WHY_66,
        ),
        Beside(
            "6.6(b)",
            "the transfer of OP-based grows with operators, that of QF-based stays small",
            f"Mbit/s at the end: {line('Mbit/s at the end')}",
            WHY_66,
        ),
        Beside(
            "6.7(a)",
            "flow-aware below intermediate below elementary; only flow-aware is restored",
            "; ".join(map(phases, (*ORDERS, HOMING))) + " (Mbit/s beyond static)",
            WHY_67,
        ),
        Beside("6.7(b)", "static worst, the three others alike", ratios),
    ]


def _figure(p: Parameters, courses: dict[str, Course]) -> Any:
    static = courses["static"].seen.sent_bps
    lines = {
        order: [[(a - b) / 1e6 for a, b in zip(c.seen.sent_bps, static, strict=True)]]
        for order, c in courses.items()
        if order != "static"
    }
    x = [float(s + 1) for s in range(p.seconds_faster)]
    return curves(x, lines, across="seconds", up="Mbit/s beyond static", title="")


WHY_66 = (
    "with fewer filters less is dropped before it travels and joins have more to do, whatever "
    "moves; as long as OP-based stays below the medium's 100 Mbit/s it pays for hops, not for "
    "congestion"
)
WHY_67 = (
    "as printed nobody asks once loads are within κ, and what is still away stays away; `homing` "
    "asks for it"
)
NOTES = (
    "Figure 6.6 varies how many filters each stream of a query has; a fragment is these and "
    "the joins that go with them. OP-based moves single operators, by load density alone, with the "
    "same protocol and no limit to how far a query is spread.",
    "Figure 6.7: every stream is wanted equally often; at the first change the streams of some "
    "nodes get faster, at the second as they were. Transfers are those beyond the static "
    "placement's in the same second. `homing` asks for native fragments back, beyond the source.",
)
