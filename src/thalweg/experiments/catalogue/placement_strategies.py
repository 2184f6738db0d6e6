"""All placement strategies on the same problems: admitted, traffic, delay and planning time.

Two kinds of problems: a data centre (every host equally far, CPU and bandwidth short, no proxies)
and a wide area (latencies, proxies, plenty of everything). The smallest are solved to the optimum:
by the whole model (III.8) in the data centre, tree by tree in the wide area. COSMOS places whole
queries by distance and shares out load, so it is in the wide area only; what it leaves to the
overlay is counted as straight ways. `growth` are numbers of queries; a strategy is left out from
the size on at which it would take longer than `longest_s`, if its time a query stayed what it was.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves
from thalweg.placement.arrays import floats, ints
from thalweg.placement.cost import cost_of
from thalweg.placement.network_use import bits_in_flight
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

CENTRE, WIDE = "data centre", "wide area"
STRATEGIES = {
    CENTRE: ("sqpr", "heuristic", "soda"),
    WIDE: ("sqpr", "heuristic", "proxy", "edge", "edge+", "in-network", "optimal", "cosmos"),
}
SLOW = ("sqpr-milp", "milp")  # on the smallest data centre only
EXACT = {CENTRE: "milp", WIDE: "optimal"}
EPOCH = 50  # queries that SODA plans at once, as in SQPR's evaluation
NOBODY = "no source sets these strategies side by side"
SIDE_MS = 100.0  # hosts are scattered over a square, as wide as this


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3
    growth: tuple[int, ...] = (10, 100, 1_000, 10_000)  # queries
    queries_per_host: int = 20
    fewest_hosts: int = 5
    most_hosts: int = 100
    small_queries: int = 8  # of the problems that are solved exactly
    small_hosts: int = 3
    work_limit: int = 300
    exact_nodes: int = 2_000
    longest_s: float = 900.0  # of CPU, for one strategy on one problem

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=1, growth=(10, 50), small_queries=5)


def run(parameters: Parameters, progress: Progress) -> Report:
    sizes = (parameters.small_queries, *parameters.growth)
    rows: list[dict[str, Any]] = []
    spent_ms: dict[tuple[str, str], float] = {}  # by the last query of each strategy
    steps = len(sizes) * parameters.seeds * 2
    done = 0
    for queries in sizes:
        small = queries == parameters.small_queries
        hosts = parameters.small_hosts if small else _hosts(parameters, queries)
        for kind, names in STRATEGIES.items():
            for seed in range(parameters.seeds):
                progress(f"{queries:,} queries, {kind}, seed {seed}", done / steps)
                done += 1
                problem = _problem(kind, hosts, queries, seed)
                extra = SLOW if small and kind == CENTRE else ()
                for name in (*names, *extra):
                    if spent_ms.get((kind, name), 0.0) * queries > 1000 * parameters.longest_s:
                        continue
                    limit = parameters.exact_nodes if name in SLOW else parameters.work_limit
                    about = {"problem": kind, "queries": queries, "hosts": hosts, "seed": seed}
                    rows.append({**about, **_measured(problem, name, limit)})
                    spent_ms[kind, name] = rows[-1]["ms a query"]
    shown = _means(rows)
    return Report(
        "placement-strategies",
        "All placement strategies on the same problems",
        asdict(parameters),
        shown,
        goals=_goals(parameters, shown),
        beside=_beside(parameters, shown),
        details={"seeds": rows},
        figures={
            kind.replace(" ", "-"): curves(
                parameters.growth,
                {name: [_column(shown, kind, name, parameters.growth)] for name in names},
                across="queries",
                up="planning time of a query, ms",
                title=kind,
            )
            for kind, names in STRATEGIES.items()
        },
    )


def _hosts(parameters: Parameters, queries: int) -> int:
    wanted = queries // parameters.queries_per_host
    return min(max(wanted, parameters.fewest_hosts), parameters.most_hosts)


def _problem(kind: str, hosts: int, queries: int, seed: int) -> Problem:
    plenty = kind == WIDE
    workload = Workload(
        hosts=hosts,
        base_streams=10 * hosts,
        queries=queries,
        ways=(2, 3),
        host_bps=(1e6 if plenty else 60) * MBPS,
        cpu=1e9 if plenty else None,
        cpu_share=0.6,
    )
    problem = make_problem(workload, seed)
    if kind == CENTRE:
        return problem
    rng = np.random.default_rng([seed, 5])
    at = rng.uniform(0, SIDE_MS, (hosts, 2))
    latency = floats(np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)))
    asked = replace(problem.queries, proxy=ints(rng.integers(0, hosts, queries)))
    located = replace(problem.hosts, latency_ms=latency)
    return Problem(located, problem.streams, problem.operators, asked)


def _measured(problem: Problem, name: str, limit: int) -> dict[str, Any]:
    began = time.process_time()
    batch = EPOCH if name == "soda" else 1
    outcome = find_strategy(name).plan(problem, Options(work_limit=limit, batch=batch))
    spent = time.process_time() - began
    objections = verify(problem, outcome.deployment)
    if objections:
        raise RuntimeError(f"{name} gave a deployment that can't run: {objections[0]}")
    cost = cost_of(problem, outcome.deployment)
    return {
        "strategy": name,
        "admitted": cost.admitted,
        "Mbps": cost.network_bps / MBPS,
        "Mbit in flight": bits_in_flight(problem, outcome.deployment) / MBPS,
        "busiest": cost.busiest,
        "ms a query": 1000 * spent / len(problem.queries),
        "proven": int("this is the best there is" in outcome.notes),
    }


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("problem", "queries", "hosts", "strategy")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[k] for k in keys), []).append(row)
    found = []
    for key, members in groups.items():
        columns = [c for c in members[0] if c not in (*keys, "seed")]
        means = {c: float(np.mean([m[c] for m in members])) for c in columns}
        found.append({**dict(zip(keys, key, strict=True)), **means})
    return found


def _of(shown: list[dict[str, Any]], kind: str, queries: int) -> dict[str, dict[str, Any]]:
    return {r["strategy"]: r for r in shown if (r["problem"], r["queries"]) == (kind, queries)}


def _column(
    shown: list[dict[str, Any]], kind: str, name: str, sizes: tuple[int, ...]
) -> list[float]:
    """Where it was left out, the line ends."""
    by_size = (_of(shown, kind, queries).get(name) for queries in sizes)
    return [row["ms a query"] if row else float("nan") for row in by_size]


def _goals(parameters: Parameters, shown: list[dict[str, Any]]) -> list[Goal]:
    centre = _of(shown, CENTRE, parameters.small_queries)
    wide = _of(shown, WIDE, parameters.small_queries)
    return [
        Goal(
            "smallest data centre: sqpr, of what the optimum admits",
            centre["sqpr"]["admitted"] / centre["milp"]["admitted"],
            0.9,
        ),
        Goal(
            "smallest wide area: in-network, bits over the trees' optimum",
            wide["in-network"]["Mbit in flight"] / wide["optimal"]["Mbit in flight"],
            1.05,
            "x",
            at_least=False,
        ),
    ]


def _beside(parameters: Parameters, shown: list[dict[str, Any]]) -> list[Beside]:
    told = []
    for kind, column in ((CENTRE, "admitted"), (WIDE, "Mbit in flight")):
        rows = _of(shown, kind, parameters.small_queries)
        best = rows[EXACT[kind]][column]
        ratios = ", ".join(f"{n} {r[column] / best:.3f}" for n, r in rows.items())
        told.append(
            Beside(
                f"{kind}, {parameters.small_queries} queries",
                NOBODY,
                f"{column} of {EXACT[kind]}'s: {ratios}",
                "each tree is placed at its optimum by itself; who shares streams among queries "
                "can need less than the sum of such optima"
                if kind == WIDE
                else "",
            )
        )
        told.append(Beside(f"{kind}, growth", NOBODY, _growth(parameters, shown, kind)))
    return told


def _growth(parameters: Parameters, shown: list[dict[str, Any]], kind: str) -> str:
    """Of each strategy, its time a query at the fewest and at the most queries that it had."""
    told = []
    for name in STRATEGIES[kind]:
        column = _column(shown, kind, name, parameters.growth)
        had = [(n, ms) for n, ms in zip(parameters.growth, column, strict=True) if ms == ms]
        if had:
            (few, first), (most, last) = had[0], had[-1]
            told.append(f"{name} {first:.3g} ms at {few:,} and {last:.3g} ms at {most:,}")
    return "time a query: " + "; ".join(told)
