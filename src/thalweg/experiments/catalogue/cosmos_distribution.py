"""Initial query distribution by the number of queries: cost and time (COSMOS, figure 3.8)."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from thalweg.experiments.cosmos import yardstick
from thalweg.experiments.cosmos.case import Case, Scale
from thalweg.experiments.cosmos.judging import Verdict, by_groups, closed
from thalweg.experiments.cosmos.lines import by_method
from thalweg.experiments.cosmos.setting import Setting
from thalweg.experiments.cosmos.timing import Stopwatch
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw
from thalweg.placement.arrays import Ints
from thalweg.placement.cosmos.centralised import centralised, greedy
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.system import Settings
from thalweg.placement.cosmos.view import global_view

NAIVE, GREEDY, CENTRALISED, HIERARCHICAL = "naive", "greedy", "centralised", "hierarchical"
STRICT, INFORMED = "hierarchical, no exchange", "groups known"
METIS = "METIS, same information and last pass"
FLAT = "centralised, no hierarchy"


@dataclass(frozen=True)
class Parameters(Scale):
    queries: tuple[int, ...] = (5_000, 20_000, 40_000, 60_000)
    partitioner_at: tuple[int, ...] = (5_000, 60_000)  # it takes minutes for many queries
    substreams: int = 20_000
    k: int = 4
    result_share: float = 0.01  # of a query's input

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=(2_000, 6_000), partitioner_at=(2_000, 6_000), providers=64)


def run(parameters: Parameters, progress: Progress) -> Report:
    made = parameters.setting()
    rows: list[dict[str, Any]] = []
    memory_gb = 0.0
    sizes = sorted(parameters.queries, reverse=True)  # the largest first: its peak of memory counts
    for i, queries in enumerate(sizes):
        made_case = _case(parameters, made, queries)
        methods = _methods(
            made_case, queries in parameters.partitioner_at and yardstick.is_available()
        )
        for j, (name, method) in enumerate(methods.items()):
            done = (i + j / len(methods)) / len(sizes)
            progress(f"{queries:,} queries: {name}", done)
            rows.append({"queries": queries, "method": name, **_measured(made_case, method)})
            if name == HIERARCHICAL and queries == sizes[0]:
                memory_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.sort(key=lambda row: row["queries"])
    return Report(
        "cosmos-distribution",
        "Query distribution by the number of queries (COSMOS, figure 3.8)",
        asdict(parameters),
        [{k: v for k, v in row.items() if k != "verdict"} for row in rows],
        goals=_goals(rows, sizes[0], memory_gb),
        beside=_beside(rows, sizes[0]),
        notes=NOTES,
        figures={
            "cost": _curve(rows, "WEC 10⁹", "weighted edge cut, 10⁹"),
            "delivered": _curve(rows, "delivered 10⁶", "delivered cost, 10⁶"),
            "time": _curve(rows, "CPU s", "seconds of CPU in all", (CENTRALISED, HIERARCHICAL)),
        },
    )


def _case(parameters: Parameters, made: Setting, queries: int) -> Case:
    about = {"substreams": parameters.substreams, "result_share": parameters.result_share}
    return parameters.case(made, queries, parameters.k, **about)


def _methods(of: Case, partitioner: bool) -> dict[str, Callable[[Stopwatch], Ints]]:
    system, proxy, settings = of.system, of.drawn.proxy, of.settings

    def informed(_watch: Stopwatch) -> Ints:
        start = by_groups(system, of.drawn.group, settings.balance.slack)
        seen = global_view(system, settings.balance)
        return sweep(system.queries, system.substreams, seen, start, passes=1)

    methods: dict[str, Callable[[Stopwatch], Ints]] = {
        HIERARCHICAL: lambda watch: distribute(system, proxy, settings, run=watch),
        STRICT: lambda watch: distribute(
            system, proxy, Settings(settings.most_vertices, settings.balance, False), run=watch
        ),
        NAIVE: lambda _: proxy,
        GREEDY: lambda _: greedy(system, settings),
        CENTRALISED: lambda watch: centralised(system, proxy, settings, run=watch),
        INFORMED: informed,
    }
    if partitioner:
        methods[METIS] = lambda _: yardstick.informed(system, settings)
        methods[FLAT] = lambda _: yardstick.without_hierarchy(system, settings)
    return methods


def _measured(of: Case, method: Callable[[Stopwatch], Ints]) -> dict[str, Any]:
    watch = Stopwatch()
    start = time.process_time()
    mapping = method(watch)
    spent = time.process_time() - start
    verdict = of.judge(mapping)
    response = watch.response_s(of.system.root) if watch.spent else spent
    return {
        **verdict.row,
        "response s": round(response, 2),
        "CPU s": round(spent, 2),
        "verdict": verdict,
    }


def _of(rows: list[dict[str, Any]], queries: int) -> dict[str, Verdict]:
    return {row["method"]: row["verdict"] for row in rows if row["queries"] == queries}


def _goals(rows: list[dict[str, Any]], queries: int, memory_gb: float) -> list[Goal]:
    found = _of(rows, queries)
    ours, naive = found[HIERARCHICAL], found[NAIVE]
    row = next(r for r in rows if r["queries"] == queries and r["method"] == HIERARCHICAL)
    at = f"{queries:,} queries: "
    allowed = [v for v in found.values() if v.busiest <= 1.1 + 1e-6]
    goals = [
        Goal(
            f"{at}closed of the distance between naive and the best known, {name}",
            round(closed(getattr(naive, of), getattr(ours, of), best), 4),
            0.9,
        )
        for name, of, best in (
            ("WEC", "cut", min(v.cut for v in allowed)),
            ("delivered cost", "delivered", min(v.delivered for v in allowed)),
        )
    ]
    goals += [
        Goal(f"{at}{name} against METIS with the same", round(ratio, 4), 1.0, at_least=False)
        for name, ratio in _against(found)
    ]
    return [
        *goals,
        Goal(f"{at}busiest provider, of its share", row["busiest"], 1.1 + 1e-6, at_least=False),
        Goal(f"{at}response time", row["response s"], 10, "s", at_least=False),
        Goal(f"{at}CPU in all", row["CPU s"], 60, "s", at_least=False),
        Goal(f"{at}memory of everything", round(memory_gb, 2), 4, "GB", at_least=False),
    ]


def _beside_metis(rows: list[dict[str, Any]]) -> list[Beside]:
    """At every size where it ran."""
    told = []
    for queries in sorted({row["queries"] for row in rows}):
        found = _of(rows, queries)
        if METIS not in found:
            continue
        cpu = {r["method"]: r["CPU s"] for r in rows if r["queries"] == queries}
        ratios = ", ".join(f"{name} {ratio:.3f}" for name, ratio in _against(found))
        flat = found[FLAT].cut / found[CENTRALISED].cut
        told.append(
            Beside(
                f"3.8, {queries:,} queries",
                "no outside partitioner",
                f"hierarchical against METIS: {ratios} of its costs, in {cpu[HIERARCHICAL]:.0f} s "
                f"of CPU against {cpu[METIS]:.0f} s; centralised without the hierarchy's coarse "
                f"graph: WEC {flat:.3f} of that with it, in {cpu[FLAT]:.0f} s against "
                f"{cpu[CENTRALISED]:.0f} s",
            )
        )
    return told


def _against(found: dict[str, Verdict]) -> list[tuple[str, float]]:
    if METIS not in found:
        return []
    ours, theirs = found[HIERARCHICAL], found[METIS]
    return [("WEC", ours.cut / theirs.cut), ("delivered", ours.delivered / theirs.delivered)]


def _beside(rows: list[dict[str, Any]], queries: int) -> list[Beside]:
    found = _of(rows, queries)
    naive, ours, one = found[NAIVE], found[HIERARCHICAL], found[CENTRALISED]
    times = {
        row["method"]: f"{row['response s']} s and {row['CPU s']} s"
        for row in rows
        if row["queries"] == queries
    }
    return [
        Beside(
            "3.8(a)",
            "naive is the worst, greedy a lot better",
            f"WEC of greedy {found[GREEDY].cut / naive.cut:.3f} of naive's, "
            f"delivered {found[GREEDY].delivered / naive.delivered:.3f}",
            "queries differ little in weight, so by weight they come in an order that has nothing "
            "to do with their interests, and each provider is filled with a mixture of all groups; "
            "the source does not say how much better its greedy is",
        ),
        Beside(
            "3.8(a)",
            "the two graph mappings are the best, and similar",
            f"WEC {ours.cut / naive.cut:.3f} (hierarchical) and {one.cut / naive.cut:.3f} "
            "(centralised) of naive's",
        ),
        Beside(
            "3.8(a)",
            "the cost is WEC alone",
            "what links carry, results included, of naive's: "
            f"{(ours.delivered + ours.results) / naive.delivered:.3f} (hierarchical), "
            f"{(one.delivered + one.results) / naive.delivered:.3f} (centralised)",
            "naive sends no results; the more queries, the more of the substreams every link "
            "carries anyway (cosmos-results, by their rate)",
        ),
        Beside(
            "3.8(b)",
            "response and total time of hierarchical are much lower than centralised",
            f"{times[HIERARCHICAL]} against {times[CENTRALISED]}",
        ),
        *_beside_metis(rows),
    ]


def _curve(rows: list[dict[str, Any]], column: str, label: str, only: tuple[str, ...] = ()) -> Draw:
    names = only or (NAIVE, GREEDY, CENTRALISED, HIERARCHICAL)
    sizes = sorted({row["queries"] for row in rows})
    return by_method(rows, names, sizes, column, across="queries", up=label)


NOTES = (
    "WEC sums rate × latency over all edges between queries, sources and proxies; *delivered* "
    "counts each substream once on each link of its tree; *results* are sent one by one to "
    "the proxies. The source gives no rate of results. At a tenth of the input, as in its "
    "figure 3.4, results alone would cost more than all substreams, and every query would "
    "best stay at its proxy; here they are a hundredth.",
    "*Best known* is the least of all mappings of the table that keep the load bound, among "
    "them one that knows the users' groups, which none of the others does. METIS cuts each query's "
    "48 strongest overlaps; its parts are assigned to providers by FAQ, and by swaps that pay for "
    "sources and proxies too; then comes the same last pass. *Centralised* coarsens by the "
    "hierarchy first (six times finer than its root); *no hierarchy* by METIS instead. *Response* "
    "is the longest chain of coordinators' "
    "steps in CPU time; *no exchange* leaves out the last step, in which the root looks at all "
    "queries once more, and which the source does not have.",
)
