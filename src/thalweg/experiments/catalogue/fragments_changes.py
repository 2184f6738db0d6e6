"""Sites whose streams or nodes change under way (COSMOS, figures 6.8 to 6.11)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from thalweg.experiments.fragments.courses import (
    STATIC,
    Change,
    mean,
    partners,
    perturbed,
    play,
)
from thalweg.experiments.fragments.site import Seen
from thalweg.experiments.fragments.workload import Sizes
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves

STILL, MOVING = "static", "dynamic"


@dataclass(frozen=True)
class Parameters:
    nodes: int = 32
    queries: int = 500
    max1: int = 5
    seconds: int = 60
    faster_from_s: int = 10  # figures 6.8, 6.9
    faster_to_s: int = 40
    faster_nodes: tuple[int, ...] = (1, 4)
    factor: float = 3.0
    other_work_from_s: int = 15  # figures 6.10, 6.11(b)
    other_work_nodes: tuple[int, ...] = (0, 1, 2, 4, 8)
    load: float = 0.9
    alphas: tuple[float, ...] = (0.5, 0.9, 0.98)
    alpha_nodes: int = 8
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            nodes=8,
            queries=100,
            seconds=30,
            faster_from_s=5,
            faster_to_s=18,
            faster_nodes=(1,),
            other_work_from_s=8,
            other_work_nodes=(0, 2),
            alphas=(0.5, 0.9),
            alpha_nodes=2,
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    jobs = _jobs(p)
    seen: dict[tuple[str, str, float], Seen] = {}
    sizes = Sizes(p.nodes, queries=p.queries, theta=0.0)
    for i, (key, settings, changes) in enumerate(jobs):
        progress(" ".join(map(str, key)), i / len(jobs))
        seen[key] = play(sizes, settings, p.seconds, p.seed, changes).seen
    rows = [_row(p, key, s) for key, s in seen.items()]
    return Report(
        "fragments-changes",
        "Sites that change under way (COSMOS, figures 6.8 to 6.11)",
        asdict(p),
        rows,
        goals=_goals(p, seen),
        beside=_beside(p, seen),
        notes=NOTES,
        figures=_figures(p, seen),
    )


def _jobs(p: Parameters) -> list[tuple[tuple[str, str, float], Any, tuple[Change, ...]]]:
    ways = ((STILL, STATIC), (MOVING, partners(p.max1)))
    found: list[tuple[tuple[str, str, float], Any, tuple[Change, ...]]] = []
    for number, count in zip(("6.8", "6.9"), p.faster_nodes, strict=False):
        chosen = perturbed(count, p.nodes, p.seed)
        there = Change(p.faster_from_s, chosen, p.factor)
        changes = (there, replace(there, second=p.faster_to_s, factor=1.0))
        found += [((number, way, count), settings, changes) for way, settings in ways]
    for count in p.other_work_nodes:
        found += [((("6.10"), way, count), s, _other_work(p, count)) for way, s in ways]
    for alpha in p.alphas:
        settings = partners(p.max1, alpha=alpha)
        found.append((("6.11(a)", MOVING, alpha), settings, ()))
        found.append((("6.11(b)", MOVING, alpha), settings, _other_work(p, p.alpha_nodes)))
    return found


def _other_work(p: Parameters, count: int) -> tuple[Change, ...]:
    if not count:
        return ()
    return (Change(p.other_work_from_s, perturbed(count, p.nodes, p.seed), load=p.load),)


def _row(p: Parameters, key: tuple[str, str, float], seen: Seen) -> dict[str, Any]:
    figure, way, value = key
    end, tail = p.seconds, max(1, p.seconds // 6)
    row: dict[str, Any] = {"figure": figure, "way": way, "nodes or α": value}
    if figure in ("6.8", "6.9"):
        late = p.faster_to_s - max(1, (p.faster_to_s - p.faster_from_s) // 3)
        row["PR_max before"] = round(mean(seen.pr_max, p.faster_from_s // 2, p.faster_from_s), 1)
        row["PR_max once changed"] = round(mean(seen.pr_max, late, p.faster_to_s), 1)
    row["PR_max at the end"] = round(mean(seen.pr_max, end - tail, end), 1)
    row["PR_max, mean"] = round(mean(seen.pr_max, 0, end), 1)
    row["moved"] = sum(seen.moves)
    row["moved in the last sixth"] = sum(seen.moves[-tail:])
    return row


def _recovers(p: Parameters, seen: Seen, change_s: int) -> int:
    """Seconds after a change until PR_max is within 1.5 × of before, and stays so for 3 s."""
    before = mean(seen.pr_max, max(1, change_s // 2), change_s)
    for second in range(change_s, p.seconds - 2):
        if max(seen.pr_max[second : second + 3]) <= 1.5 * before:
            return second - change_s
    return p.seconds


def _goals(p: Parameters, seen: dict[tuple[str, str, float], Seen]) -> list[Goal]:
    goals = []
    for number, count in zip(("6.8", "6.9"), p.faster_nodes, strict=False):
        moving, still = seen[number, MOVING, count], seen[number, STILL, count]
        late = p.faster_to_s - max(1, (p.faster_to_s - p.faster_from_s) // 3)
        goals += [
            Goal(
                f"PR_max of static over dynamic once changed, figure {number}",
                round(
                    mean(still.pr_max, late, p.faster_to_s)
                    / mean(moving.pr_max, late, p.faster_to_s),
                    1,
                ),
                2.0,
            ),
            Goal(
                f"seconds until PR_max is within 1.5 × of before, figure {number}",
                float(_recovers(p, moving, p.faster_from_s)),
                10.0,
                "s",
                at_least=False,
            ),
            Goal(
                f"share of moves within six seconds after a change, figure {number}",
                round(_soon(p, moving), 3),
                0.7,
            ),
        ]
    most = p.other_work_nodes[-1]
    goals.append(
        Goal(
            f"mean PR_max of static over dynamic, {most} nodes with other work",
            round(
                mean(seen["6.10", STILL, most].pr_max, 0, p.seconds)
                / mean(seen["6.10", MOVING, most].pr_max, 0, p.seconds),
                2,
            ),
            1.5,
        )
    )
    return goals


def _soon(p: Parameters, seen: Seen) -> float:
    """Of the moves from the first change on."""
    moves = seen.moves
    total = sum(moves[p.faster_from_s :])
    soon = sum(sum(moves[at : min(at + 6, p.seconds)]) for at in (p.faster_from_s, p.faster_to_s))
    return soon / total if total else 1.0


def _beside(p: Parameters, seen: dict[tuple[str, str, float], Seen]) -> list[Beside]:
    found = []
    for number, count in zip(("6.8", "6.9"), p.faster_nodes, strict=False):
        told = []
        for way in (STILL, MOVING):
            row = _row(p, (number, way, count), seen[number, way, count])
            told.append(
                f"{way} {row['PR_max before']:,.0f} before, {row['PR_max once changed']:,.0f} once "
                f"changed, {row['PR_max at the end']:,.0f} at the end"
            )
        moves = seen[number, MOVING, count].moves
        at, to = p.faster_from_s, p.faster_to_s
        told.append(
            f"moves: {sum(moves[:at])} before, {sum(moves[at : at + 6])} in the first 6 s, "
            f"{sum(moves[at + 6 : to])} until {to} s, {sum(moves[to : to + 6])} in 6 s, "
            f"{sum(moves[to + 6 :])} later"
        )
        source = (
            "static rises and is restored; dynamic hardly changes but for the moves, within 5 s"
        )
        found.append(Beside(number, source, "; ".join(told), WHY_RATES))
    base = {w: mean(seen["6.10", w, 0].pr_max, 0, p.seconds) for w in (STILL, MOVING)}
    lines = [
        f"{way} "
        + ", ".join(
            f"{n}: {mean(seen['6.10', way, n].pr_max, 0, p.seconds) / base[way]:.1f}"
            for n in p.other_work_nodes
        )
        for way in (STILL, MOVING)
    ]
    found.append(
        Beside(
            "6.10",
            "over that without: static degrades much faster with more nodes",
            "; ".join(lines),
        )
    )
    for figure, source in (
        ("6.11(a)", "a low α makes PR_max fluctuate"),
        ("6.11(b)", "the larger α, the slower the reaction"),
    ):
        told = [f"α = {a:g}: {_told_alpha(p, figure, seen[figure, MOVING, a])}" for a in p.alphas]
        found.append(Beside(figure, source, "; ".join(told), WHY_ALPHA[figure]))
    return found


def _told_alpha(p: Parameters, figure: str, seen: Seen) -> str:
    if figure == "6.11(b)":
        return f"{_recovers(p, seen, p.other_work_from_s)} s to recover, {sum(seen.moves)} moves"
    tail = seen.pr_max[len(seen.pr_max) // 4 :]
    return f"{min(tail):.0f} to {max(tail):.0f}, {sum(seen.moves)} moves"


def _figures(p: Parameters, seen: dict[tuple[str, str, float], Seen]) -> dict[str, Any]:
    x = [float(s + 1) for s in range(p.seconds)]
    found = {}
    for number, count in zip(("6.8", "6.9"), p.faster_nodes, strict=False):
        ratios = {w: [seen[number, w, count].pr_max] for w in (STILL, MOVING)}
        moves = {"moves": [[float(m) for m in seen[number, MOVING, count].moves]]}
        up = "PR_max (log)"
        found[f"{number}a-pr"] = _logarithmic(curves(x, ratios, across="seconds", up=up, title=""))
        found[f"{number}b-moves"] = curves(x, moves, across="seconds", up="moves", title="")
    for figure in ("6.11(a)", "6.11(b)"):
        lines = {f"α = {a:g}": [seen[figure, MOVING, a].pr_max] for a in p.alphas}
        name = figure.replace("(", "").replace(")", "")
        found[f"{name}-pr"] = _logarithmic(
            curves(x, lines, across="seconds", up="PR_max (log)", title="")
        )
    return found


def _logarithmic(draw: Any) -> Any:
    def drawn(axes: Any) -> None:
        draw(axes)
        axes.set_yscale("log")

    return drawn


WHY_RATES = (
    "streams that are more than their node can do leave static with a queue, which is worked off "
    "slowly once the rates are back"
)
WHY_ALPHA = {
    "6.11(a)": "",
    "6.11(b)": "a low α follows noise: more fragments move, and each move stalls its queries",
}
NOTES = (
    "Every stream is wanted equally often, so that the site is balanced at first. PR of a stream "
    "and query is the mean over the results of a second, that of a query the worst of its streams, "
    "and PR_max the worst of all queries. Other work is jobs of 1 ms that can't move, as many as "
    "lift a node's load to the value given.",
)
