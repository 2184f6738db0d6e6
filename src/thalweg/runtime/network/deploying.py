"""From queries to fragments at nodes: a Problem over the network as it is measured, a strategy's
Deployment, judged by `verify`, and what each node is to compute.

`sqpr` sees what it has placed before, and reuses it; the others see hosts with so much less left.
What was placed is not moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.engine.site import SiteError, WrongUse
from thalweg.placement.arrays import floats
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.explain import Plans, explain
from thalweg.placement.from_cql.parts import Part, part_of
from thalweg.placement.from_cql.problem import Measured, problem_of_queries
from thalweg.placement.from_cql.whole import must_be_whole
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options, Outcome, Refusal
from thalweg.placement.verify import verify
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan, encode_plan
from thalweg.runtime.data.fragments import Fragment, Input
from thalweg.runtime.network.measuring import NodeMeasure, Task, row_bits

PLANNED = ("sqpr", "in-network", "edge", "edge+", "cosmos")
REUSING = ("sqpr",)
_ROWS_PER_S = 1.0  # of a stream of which nothing has come yet
_LEAST_BPS = 1.0  # of one that is silent: what does not flow would cost nothing anywhere
_CPU_PER_BPS = 1e-8  # of a core, where nothing was measured


@dataclass(frozen=True, slots=True)
class Placement:
    """A query, the node where it stands, and what is computed where."""

    query: str
    node: str
    fragment: Fragment
    task: Task


@dataclass(frozen=True, slots=True)
class Planned:
    problem: Problem
    outcome: Outcome
    placements: tuple[Placement, ...]
    refusals: tuple[tuple[str, Refusal], ...]

    def check(self, strategy: str) -> None:
        """Raises WrongUse with what is short where, if a query was not admitted."""
        if not self.refusals:
            return
        hosts = self.problem.hosts.names
        told = "; ".join(
            f"{query}: {r.resource} is short at {hosts[r.host] if r.host is not None else 'all'}"
            f" ({r.detail})"
            for query, r in self.refusals
        )
        raise WrongUse(f"{strategy} does not admit {told}")


def plan_queries(
    queries: Sequence[QueryDef],
    strategy: str,
    me: str,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
) -> Planned:
    """`homes` are those of all streams, by name; `me` is the queries' proxy. Raises SiteError if
    nothing can be planned, or the plan does not hold."""
    names = tuple(n.name for n in measured)
    number = {name: i for i, name in enumerate(names)}
    away = sorted({homes[s.name] for q in queries for s in base_streams(q.plan)} - number.keys())
    if away:
        raise SiteError(f"node {away[0]} does not answer, and has streams that are needed")
    again = {q.name for q in queries}  # what stands may be planned anew
    tasks = [t for n in measured for t in n.tasks if t.query not in again]
    standing = [t for t in tasks if _is_there(t, number, homes)]
    old = [QueryDef(t.query, decode_plan(t.plan)) for t in standing]
    late = [t.late for t in standing] + [_is_late(q, homes, measured) for q in queries]
    everything = [*old, *queries]
    known = Measured(
        {s.name: number[homes[s.name]] for q in everything for s in base_streams(q.plan)},
        {s.name: _rate(s, homes, measured) for q in everything for s in base_streams(q.plan)},
        cpu_per_bps=_cpu_per_bps(measured),
    )
    reuses = strategy in REUSING
    considered = everything if reuses else list(queries)
    lates = late if reuses else late[len(old) :]
    try:
        problem = _problem(_hosts(measured), considered, lates, known, number[me])
        if reuses:
            problem = problem.with_running(_running(problem, standing, number))
        else:
            problem = _problem(
                _left(_hosts(measured), everything, late, known, standing, number),
                considered,
                lates,
                known,
                number[me],
            )
        outcome = find_strategy(strategy).plan(problem, Options())
    except ValueError as error:
        raise SiteError(f"{strategy} has no plan: {error}") from None
    problem = outcome.problem or problem
    wrong = verify(problem, outcome.deployment)
    if wrong:
        raise SiteError(f"{strategy} gave a deployment that can't run: {wrong[0]}")
    first = len(considered) - len(queries)
    plans = Plans(problem, outcome.deployment)
    placements = []
    for i, query in enumerate(queries, first):
        tree = plans.of(i)
        if tree is None:
            continue
        part = part_of(problem, query.plan, tree, late=lates[i])
        fragment = _fragment(part, names)
        runs = sorted({(n.host, n.operator) for n in tree.walk() if n.operator is not None})
        sends = sorted(_sends(tree))
        task = Task(
            query.name,
            encode_plan(query.plan),
            strategy,
            lates[i],
            tuple((names[h], problem.operators.names[o]) for h, o in runs),
            tuple((names[a], names[b], problem.streams.names[s]) for a, b, s in sends),
            (*explain(problem, outcome.deployment, i).splitlines(), *outcome.notes),
            fragment,
        )
        placements.append(Placement(query.name, names[part.host], fragment, task))
    fresh = {i: q.name for i, q in enumerate(queries, first)}
    refusals = tuple((fresh[r.query], r) for r in outcome.refusals if r.query in fresh)
    return Planned(problem, outcome, tuple(placements), refusals)


# --- the network as it is


def _hosts(measured: Sequence[NodeMeasure]) -> Hosts:
    def limits(found: Iterable[float | None]) -> np.ndarray:
        return floats([np.inf if x is None else x for x in found])

    delays = [[0.0 if a is b else _delay(a, b) for b in measured] for a in measured]
    return Hosts(
        tuple(n.name for n in measured),
        limits(n.cpu for n in measured),
        limits(n.out_bps for n in measured),
        limits(n.in_bps for n in measured),
        latency_ms=floats(np.array(delays, np.float64)),
    )


def _delay(one: NodeMeasure, other: NodeMeasure) -> float:
    """As the two of them see it."""
    seen = [x for x in (one.delays_ms.get(other.name), other.delays_ms.get(one.name)) if x]
    return max(sum(seen) / len(seen), 1e-3) if seen else 1.0


def _rate(stream: object, homes: Mapping[str, str], measured: Sequence[NodeMeasure]) -> float:
    name = stream.name  # type: ignore[attr-defined]
    for node in measured:
        if node.name == homes[name] and name in node.streams:
            found = node.streams[name]
            if found.has_begun:
                return max(found.rows_per_s * found.row_bits, _LEAST_BPS)
    return _ROWS_PER_S * row_bits(stream)  # type: ignore[arg-type]


def _cpu_per_bps(measured: Sequence[NodeMeasure]) -> float:
    seconds, bits = sum(n.cpu_s for n in measured), sum(n.bits for n in measured)
    return seconds / bits if seconds and bits else _CPU_PER_BPS


def _is_late(query: QueryDef, homes: Mapping[str, str], measured: Sequence[NodeMeasure]) -> bool:
    read = {s.name for s in base_streams(query.plan) if not s.is_table}
    return any(n in read and s.has_begun for node in measured for n, s in node.streams.items())


def _is_there(task: Task, number: Mapping[str, int], homes: Mapping[str, str]) -> bool:
    """Whether all that a task needs is still known."""
    nodes = {n for n, _ in task.runs} | {n for a, b, _ in task.sends for n in (a, b)}
    streams = base_streams(decode_plan(task.plan))
    return nodes <= number.keys() and all(homes.get(s.name) in number for s in streams)


def _problem(
    hosts: Hosts, queries: Sequence[QueryDef], late: Sequence[bool], known: Measured, proxy: int
) -> Problem:
    wholes = [lambda node, late=x: must_be_whole(node, late=late) for x in late]
    return problem_of_queries(hosts, queries, known, [proxy] * len(queries), wholes)


def _running(
    problem: Problem, tasks: Sequence[Task], number: Mapping[str, int]
) -> Deployment | None:
    """What runs already; a query one of whose operators is not known any more is left out."""
    operators = {n: i for i, n in enumerate(problem.operators.names)}
    streams = {n: i for i, n in enumerate(problem.streams.names)}
    runs: set[tuple[int, int]] = set()
    sends: set[tuple[int, int, int]] = set()
    serves: dict[int, int] = {}
    for i, task in enumerate(tasks):
        if all(o in operators for _, o in task.runs) and all(s in streams for *_, s in task.sends):
            runs |= {(number[h], operators[o]) for h, o in task.runs}
            sends |= {(number[a], number[b], streams[s]) for a, b, s in task.sends}
            serves[i] = int(problem.queries.proxy[i])
    found = deployment(len(problem.queries), runs=runs, sends=sends, serves=serves)
    return found if serves and not verify(problem, found) else None


def _left(
    hosts: Hosts,
    queries: Sequence[QueryDef],
    late: Sequence[bool],
    known: Measured,
    tasks: Sequence[Task],
    number: Mapping[str, int],
) -> Hosts:
    """What is left of the hosts beside what they were given to do."""
    if not tasks:
        return hosts
    problem = _problem(hosts, queries, late, known, 0)
    running = _running(problem, tasks, number)
    if running is None:
        return hosts
    load = load_of(problem, running)
    return Hosts(
        hosts.names,
        floats(np.maximum(hosts.cpu - load.cpu, 0)),
        floats(np.maximum(hosts.out_bps - load.out_bps, 0)),
        floats(np.maximum(hosts.in_bps - load.in_bps, 0)),
        hosts.link_bps,
        hosts.latency_ms,
    )


# --- what is to be done


def _fragment(part: Part, names: Sequence[str]) -> Fragment:
    inputs = tuple(Input(n, names[p.host], _fragment(p, names)) for n, p in part.inputs)
    return Fragment(encode_plan(part.plan), inputs, part.from_beginning)


def _sends(tree: object) -> set[tuple[int, int, int]]:
    """Which host sends which what, in a query's tree."""
    found = set()
    for node in tree.walk():  # type: ignore[attr-defined]
        for arc in node.inputs:
            if arc.sent and arc.node.host != node.host:
                found.add((arc.node.host, node.host, arc.node.stream))
    return found
