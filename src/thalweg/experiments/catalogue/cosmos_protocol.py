"""What nodes arrive at by the protocol, beside one who knows everything (COSMOS 3.3.6, 3.3.7).

Queries are submitted to nodes of the simulator one after the other; the tree routes them, and
rounds redistribute them. The source has no figure for this: its simulation has no messages.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.judging import closed
from thalweg.experiments.cosmos.nodes import nodes
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw, curves
from thalweg.placement.arrays import Ints, ints
from thalweg.placement.cosmos.cost import imbalance, loads, weighted_edge_cut
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.workload import Drawn, Workload, draw

NAIVE, SUBMITTED, AT_REST = "naive", "protocol, all submitted", "protocol, at rest"
STRICT, EXCHANGED = "hierarchical, no exchange", "hierarchical"
WARM_UP_S = 10
STEP_S = 20


@dataclass(frozen=True)
class Parameters:
    nodes: tuple[int, ...] = (24, 48, 96)
    queries_per_node: int = 16
    seeds: int = 3
    substreams: int = 400
    groups: int = 8
    wanted: tuple[int, int] = (10, 20)
    k: int = 3
    slack: float = 0.1
    submitted_per_s: float = 10.0
    rest_s: int = 240  # after the last query

    def __post_init__(self) -> None:
        if min(self.nodes) < 8:
            raise ValueError("a tree of clusters needs 8 nodes or more")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=(24,), queries_per_node=12, seeds=2, rest_s=120)


@dataclass(frozen=True)
class _Judge:
    system: System

    def row(self, mapping: Ints, moved: float) -> dict[str, Any]:
        made = self.system
        cut = weighted_edge_cut(made.network, made.substreams, made.queries, mapping).total
        load = loads(made.queries.weight, mapping, len(made.network))
        busiest = imbalance(load, made.network.capability)
        return {
            "WEC 10⁶": round(cut / 1e6, 3),
            "busiest": round(busiest, 3),
            "moves a query": round(moved, 2),
        }


def run(parameters: Parameters, progress: Progress) -> Report:
    rows: list[dict[str, Any]] = []
    courses: dict[int, list[list[float]]] = {}
    cases = [(n, seed) for n in parameters.nodes for seed in range(1, parameters.seeds + 1)]
    for i, (count, seed) in enumerate(cases):

        def tell(text: str, done: float = i / len(cases), at: str = f"{count} nodes") -> None:
            progress(f"{at}, {text}", done)

        found, course = _measured(parameters, count, seed, tell)
        rows += [{"nodes": count, "seed": seed, **row} for row in found]
        courses.setdefault(count, []).append(course)
    return Report(
        "cosmos-protocol",
        "Queries distributed by the protocol between nodes (COSMOS 3.3.6, 3.3.7)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={"course": _course(parameters, courses)},
    )


def _measured(
    parameters: Parameters, count: int, seed: int, tell: Any
) -> tuple[list[dict[str, Any]], list[float]]:
    """Rows by method, and which share of the distance was closed in the course of time."""
    tell("the tree")
    made = nodes(count, parameters.k, parameters.slack, seed)
    drawn, source_at = _workload(parameters, count, seed)
    system = made.system(drawn, source_at)
    judge, queries = _Judge(system), len(drawn.queries)
    known = _known(system, drawn, parameters.slack, seed)
    rows = [{"method": name, **judge.row(m, 0.0)} for name, m in known.items()]
    made.measure_rates(drawn, source_at)
    made.run(WARM_UP_S)
    for query in range(queries):
        made.submit(drawn, query)
        made.run(1 / parameters.submitted_per_s)
    made.run(2)
    naive, best = (r["WEC 10⁶"] for r in rows[:2])
    course = []
    for step in range(parameters.rest_s // STEP_S + 1):
        tell(f"{step * STEP_S} s after the last query")
        row = judge.row(made.mapping(queries), made.moves / queries)
        course.append(closed(naive, row["WEC 10⁶"], best))
        if step == 0:
            rows.append({"method": SUBMITTED, **row})
        made.run(STEP_S)
    rows.append({"method": AT_REST, **judge.row(made.mapping(queries), made.moves / queries)})
    return rows, course


def _workload(parameters: Parameters, count: int, seed: int) -> tuple[Drawn, Ints]:
    workload = Workload(
        queries=parameters.queries_per_node * count,
        substreams=parameters.substreams,
        sources=count // 4,
        providers=count,
        groups=parameters.groups,
        wanted=parameters.wanted,
    )
    at = np.random.default_rng([seed, 5]).permutation(count)[: workload.sources]
    return draw(workload, seed), ints(at)


def _known(system: System, drawn: Drawn, slack: float, seed: int) -> dict[str, Ints]:
    """What one would do who knows everything: the first two are the ends of the distance."""
    found = {NAIVE: drawn.proxy}
    for name, exchange in ((STRICT, False), (EXCHANGED, True)):
        settings = Settings(balance=Balance(slack), exchange=exchange, seed=seed)
        found[name] = distribute(system, drawn.proxy, settings)
    return found


def _shares(rows: list[dict[str, Any]], method: str, best: str) -> list[float]:
    cuts: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        cuts.setdefault((row["nodes"], row["seed"]), {})[row["method"]] = row["WEC 10⁶"]
    return [closed(of[NAIVE], of[method], of[best]) for of in cuts.values()]


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    shares = _shares(rows, AT_REST, STRICT)
    busiest = max(row["busiest"] for row in rows if row["method"] == AT_REST)
    return [
        Goal(
            "closed of the distance between naive and hierarchical, no exchange: mean",
            round(float(np.mean(shares)), 3),
            0.8,
        ),
        Goal("the same, worst", round(min(shares), 3), 0.6),
        Goal("busiest provider at rest, of its share", busiest, 1.1 + 1e-3, "", False),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    def told(method: str, best: str) -> str:
        shares = _shares(rows, method, best)
        return f"{np.mean(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"

    return [
        Beside(
            "-",
            "new queries are routed level by level; redistribution re-balances and refines",
            f"closed of the distance to {STRICT}: {told(SUBMITTED, STRICT)} when all are "
            f"submitted, {told(AT_REST, STRICT)} at rest; to {EXCHANGED}: "
            f"{told(AT_REST, EXCHANGED)}",
            "the source's distribution is computed at once, from queries that are all known; here "
            "they come one by one to nodes that must keep the bound at all times, and a "
            "coordinator does not know how far its children are from the rest of the network",
        )
    ]


def _course(parameters: Parameters, courses: dict[int, list[list[float]]]) -> Draw:
    seconds = [STEP_S * i for i in range(parameters.rest_s // STEP_S + 1)]
    return curves(
        seconds,
        {f"{count} nodes": lines for count, lines in courses.items()},
        across="seconds after the last query",
        up="closed of the distance to hierarchical, no exchange",
        title=f"mean and range of {parameters.seeds} seeds",
    )


NOTES = (
    "All providers are alike and nothing fails. *Naive* leaves queries at their proxies, whatever "
    "the load. *Hierarchical* is the distribution by one who knows all queries and distances, over "
    "the tree that the nodes have built; *no exchange* is what the source describes, *exchange* "
    "the last look by one who knows everything. A round takes place every 4 s, instead of every "
    "200 s.",
)
