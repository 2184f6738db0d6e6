"""How fast new queries are routed, and how well, by the size of clusters (COSMOS, fig. 3.11)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.case import Case, Scale
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.arrays import Ints, ints
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.routing import Router
from thalweg.placement.cosmos.workload import Drawn


@dataclass(frozen=True)
class Parameters(Scale):
    queries: int = 30_000
    arriving: int = 30_000
    cluster_sizes: tuple[int, ...] = (2, 4, 8, 16)
    batch: int = 30_000
    repeats: int = 7  # the quickest counts: others are at work on the machine
    single_repeats: int = 2

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=10_000, arriving=5_000, cluster_sizes=(2, 4, 8), batch=5_000, repeats=3)


def run(parameters: Parameters, progress: Progress) -> Report:
    made = parameters.setting()
    rows = []
    for i, k in enumerate(parameters.cluster_sizes):
        progress(f"k = {k}", i / len(parameters.cluster_sizes))
        rows.append({"k": k, **_measured(parameters.case(made, parameters.queries, k), parameters)})
    return Report(
        "cosmos-routing",
        "Routing of new queries by the size of clusters (COSMOS, figure 3.11)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "rate": _curve(rows, ("root one by one /s", "root in bulk /s"), "queries a second"),
            "cost": _curve(rows, ("WEC, one by one", "WEC, in bulk"), "weighted edge cut, 10⁹"),
        },
    )


def _measured(now: Case, parameters: Parameters) -> dict[str, Any]:
    settings, root = now.settings, now.system.root
    before = distribute(now.system, now.drawn.proxy, settings)
    later, new = now.more(parameters.arriving, parameters.queries, parameters.seed)

    def opened() -> Router:
        return Router(now.system, before, settings.balance)

    router = opened()
    total = router.total_with(new.queries)
    bulk_s = min(
        _timed(lambda: router.children_of(root, new.queries, total))[0]
        for _ in range(parameters.repeats)
    )
    whole_s, bulk = min(
        (_timed_route(opened(), new, parameters.batch) for _ in range(parameters.repeats)),
        key=lambda timed: timed[0],
    )
    single_s, single = min(
        (_timed(_routed_singly(opened(), new)) for _ in range(parameters.single_repeats)),
        key=lambda timed: timed[0],
    )
    root_s = min(_timed(_root_singly(opened(), new))[0] for _ in range(parameters.single_repeats))
    count = parameters.arriving
    cut = {name: later.judge(_all(before, found)) for name, found in (("1", single), ("n", bulk))}
    return {
        "levels": root.height,
        "root's children": len(root.children),
        "root one by one /s": round(count / root_s),
        "root in bulk /s": round(count / bulk_s),
        "end to end one by one /s": round(count / single_s),
        "end to end in bulk /s": round(count / whole_s),
        "WEC, one by one": round(cut["1"].cut / 1e9, 2),
        "WEC, in bulk": round(cut["n"].cut / 1e9, 2),
        "WEC, random": round(later.judge(_all(before, new.proxy)).cut / 1e9, 2),
        "busiest, one by one": round(cut["1"].busiest, 3),
        "busiest, in bulk": round(cut["n"].busiest, 3),
    }


def _routed_singly(router: Router, new: Drawn) -> Callable[[], Ints]:
    return lambda: router.route(new.queries)


def _root_singly(router: Router, new: Drawn) -> Callable[[], Ints]:
    root = router.root
    return lambda: router.children_one_by_one(root, new.queries)


def _all(before: Ints, found: Ints) -> Ints:
    return ints(np.concatenate([before, found]))


def _timed_route(router: Router, new: Drawn, batch: int) -> tuple[float, Ints]:
    return _timed(lambda: router.route_in_bulk(new.queries, batch))


def _timed(work: Callable[[], Ints]) -> tuple[float, Ints]:
    # Of this thread alone: those of the BLAS go on waiting for work, busily, when they have none.
    start = time.thread_time()
    done = work()
    return time.thread_time() - start, done


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    at = next((row for row in rows if row["k"] == 4), rows[0])
    return [
        Goal("queries a second one by one at the root, k = 4", at["root one by one /s"], 8e5),
        Goal("queries a second in bulk at the root, k = 4", at["root in bulk /s"], 2e6),
        Goal("queries a second in bulk to the provider, k = 4", at["end to end in bulk /s"], 1e5),
        Goal(
            "WEC in bulk against one by one, k = 4",
            round(at["WEC, in bulk"] / at["WEC, one by one"], 4),
            1.02,
            "",
            False,
        ),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    first, last = rows[0], rows[-1]
    return [
        Beside(
            "3.11",
            "the root handles more than 800,000 queries a second, one by one; more, the smaller k",
            ", ".join(
                f"k = {r['k']}: {r['root one by one /s']:,} one by one, "
                f"{r['root in bulk /s'] / 1e6:.2f} million in bulk"
                for r in rows
            ),
            _slower(rows),
        ),
        Beside(
            "3.11",
            "one by one, to the provider (the source does not measure it)",
            ", ".join(
                f"k = {r['k']}: {r['end to end one by one /s']:,}, in bulk "
                f"{r['end to end in bulk /s']:,}"
                for r in rows
            ),
        ),
        Beside(
            "3.11",
            "a smaller k gives a worse distribution, as there are more levels",
            f"WEC {first['WEC, one by one']} at k = {first['k']}, "
            f"{last['WEC, one by one']} at k = {last['k']}",
        ),
    ]


def _slower(rows: list[dict[str, Any]]) -> str:
    """A query's work is a few hundred additions; Python takes longer than they do."""
    at = rows[0]
    share = at["root in bulk /s"] / at["root one by one /s"]
    return (
        "one by one, each query is three compiled loops over its interests with Python between "
        f"them, where the source is C: the same additions in bulk take 1/{share:.0f} of the time. "
        "A batch is routed with the tables as they were before it, which costs nothing in WEC "
        "(last columns); the root's children need not grow with k: it has as many as are left at "
        "the top"
    )


def _curve(
    rows: list[dict[str, Any]], columns: tuple[str, ...], label: str
) -> Callable[[Any], None]:
    lines = {column: [[row[column] for row in rows]] for column in columns}
    return curves([row["k"] for row in rows], lines, across="k", up=label, title="")


NOTES = (
    "A query comes as the row of its interests, 100 to 200 substreams. In bulk, all of a batch are "
    "routed with the tables as they were before it. The rates are of CPU time of the one thread "
    "that routes; *end to end* includes all levels down to the provider, and bringing every "
    "coordinator's tables up to date, where the BLAS may use another core for a tenth of the work.",
)
