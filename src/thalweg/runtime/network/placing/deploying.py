"""From queries to fragments at nodes: a Problem over the network as it is measured, a strategy's
Deployment, judged by `verify`, and what each node is to compute.

`sqpr` sees what it has placed before, and reuses it; the others see hosts with so much less left.
What was placed is not moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from msgspec import structs

from thalweg.adapt.replanning import Gain, Use, overload_bps
from thalweg.engine.site import SiteError, WrongUse
from thalweg.engine.wrappers.refusals import only_passes_on, refusal
from thalweg.placement.arrays import floats
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.explain import Plans, explain
from thalweg.placement.from_cql.parts import Part, part_of
from thalweg.placement.from_cql.problem import Measured, problem_of_queries
from thalweg.placement.from_cql.whole import must_be_whole
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.strategy import Options, Outcome, Refusal
from thalweg.placement.verify import verify
from thalweg.plan.catalog import QueryDef
from thalweg.plan.engines import SHARED
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan, encode_plan
from thalweg.runtime.data.fragments import Fragment, Input
from thalweg.runtime.network.measuring import NodeMeasure, Task, row_bits

PLANNED = ("sqpr", "in-network", "edge", "edge+", "fragments", "cosmos")
REUSING = ("sqpr",)
_ROWS_PER_S = 1.0  # of a stream of which nothing has come yet
_LEAST_BPS = 1.0  # of one that is silent: what does not flow would cost nothing anywhere
_CPU_PER_BPS = 1e-8  # of a core, where nothing was measured


class NotAdmitted(WrongUse):
    """A strategy finds no room for a query; there may be some later."""


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
        """Raises NotAdmitted with what is short where."""
        if not self.refusals:
            return
        hosts = self.problem.hosts.names
        told = "; ".join(
            f"{query}: {r.resource} is short at {hosts[r.host] if r.host is not None else 'all'}"
            f" ({r.detail})"
            for query, r in self.refusals
        )
        raise NotAdmitted(f"{strategy} does not admit {told}")


Decide = Callable[[Problem], Outcome]


def plan_queries(
    queries: Sequence[QueryDef],
    strategy: str,
    me: str,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    bounds_ms: Mapping[str, float] | None = None,
    decide: Decide | None = None,
    were_late: Mapping[str, bool] | None = None,
) -> Planned:
    """`homes` are those of all streams, by name; `me` is the queries' proxy; `bounds_ms`, by query,
    how late results may be; `decide`, if nobody is to plan here: what was decided elsewhere, of
    queries that stand already by the trees that they had then (`were_late`). Raises SiteError if
    nothing can be planned, or the plan does not hold."""
    bounds_ms = bounds_ms or {}
    planned = _plan(queries, strategy, me, homes, measured, bounds_ms, decide, were_late)
    words = engine_refusals(planned.placements, measured)
    if not words:
        return planned
    if decide is None:
        # Planners know cores, not engines: who refuses has none for these.
        without = [structs.replace(n, cpu=0.0) if n.engine != SHARED else n for n in measured]
        again = _plan(queries, strategy, me, homes, without, bounds_ms)
        if not again.refusals and not engine_refusals(again.placements, measured):
            told = tuple(replace(p, task=_with_words(p.task, words)) for p in again.placements)
            return replace(again, placements=told)
    # Strategies that place by the network alone do not look at cores.
    placed, known = [], {q.name: q for q in queries}
    for placement in planned.placements:
        query = known[placement.query]
        found = engine_refusals([placement], measured)
        placed.append(_whole(query, me, strategy, homes, measured, found) if found else placement)
    return replace(planned, placements=tuple(placed))


def engine_refusals(
    placements: Iterable[Placement], measured: Sequence[NodeMeasure]
) -> tuple[str, ...]:
    """What placed queries would have nodes compute whose engines can't."""
    engines = {n.name: n.engine for n in measured}

    def refused(at: str, fragment: Fragment) -> Iterator[str]:
        why = None if only_passes_on(fragment.node) else refusal(engines[at], fragment.node)
        if why is not None:
            yield f"{at} has another engine: {why}"
        for given in fragment.inputs:
            yield from refused(given.at, given.fragment)

    found = (why for p in placements for why in refused(p.node, p.fragment))
    return tuple(dict.fromkeys(found))


def _whole(
    query: QueryDef,
    me: str,
    strategy: str,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    words: Sequence[str],
) -> Placement:
    """At the node that was asked, or else at one whose engine takes it."""
    engines = {n.name: n.engine for n in measured}
    at = able_node(query, engines, me, homes)
    if at is None:
        raise SiteError(f"{strategy} has no plan: {words[0]}; and no node takes all of it")
    return whole_at(query, at, strategy, (*words, f"so all of it stands at {at}"))


def able_node(
    query: QueryDef, engines: Mapping[str, str], me: str, homes: Mapping[str, str]
) -> str | None:
    """Whose engine takes a query: who was asked, or where most of its streams are at home."""
    able = sorted(n for n, engine in engines.items() if refusal(engine, query.plan) is None)
    own = [homes.get(s.name) for s in base_streams(query.plan)]
    return max(able, key=lambda n: (n == me, own.count(n)), default=None)


def whole_at(query: QueryDef, at: str, strategy: str, words: Sequence[str]) -> Placement:
    plan = encode_plan(query.plan)
    task = Task(query.name, plan, strategy, False, (), (), tuple(words), Fragment(plan))
    return Placement(query.name, at, Fragment(plan), task)


def _with_words(task: Task, words: Sequence[str]) -> Task:
    return structs.replace(task, words=(*task.words, *words))


def _planner(strategy: str) -> Decide:
    # Solvers take half a second to import: nodes that never plan do without.
    from thalweg.placement.strategies import find_strategy

    return lambda problem: find_strategy(strategy).plan(problem, Options())


def problem_to_decide(
    queries: Sequence[QueryDef],
    me: str,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    bounds_ms: Mapping[str, float],
    were_late: Mapping[str, bool] | None = None,
) -> Problem:
    """What a protocol between nodes is asked, over the nodes that the query itself names. Raises
    SiteError."""
    number = {n.name: i for i, n in enumerate(measured)}
    _check_there(queries, homes, number)
    late = _lates(queries, homes, measured, were_late)
    known = _known(queries, number, homes, measured)
    proxies = [number[me]] * len(queries)
    try:
        return _problem(_hosts(measured), queries, late, known, proxies, bounds_ms)
    except ValueError as error:
        raise SiteError(f"it can't be placed: {error}") from None


def _check_there(
    queries: Sequence[QueryDef], homes: Mapping[str, str], number: Mapping[str, int]
) -> None:
    away = sorted({homes[s.name] for q in queries for s in base_streams(q.plan)} - number.keys())
    if away:
        raise SiteError(f"node {away[0]} does not answer, and has streams that are needed")


def _plan(
    queries: Sequence[QueryDef],
    strategy: str,
    me: str,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    bounds_ms: Mapping[str, float],
    decide: Decide | None = None,
    were_late: Mapping[str, bool] | None = None,
) -> Planned:
    names = tuple(n.name for n in measured)
    number = {name: i for i, name in enumerate(names)}
    _check_there(queries, homes, number)
    again = {q.name for q in queries}  # what stands may be planned anew
    tasks = [t for n in measured for t in n.tasks if t.query not in again]
    # What a user has spread by hand is no planner's.
    standing = [t for t in tasks if t.runs and _is_there(t, number, homes)]
    old = [QueryDef(t.query, decode_plan(t.plan)) for t in standing]
    late = [t.late for t in standing] + _lates(queries, homes, measured, were_late)
    everything = [*old, *queries]
    known = _known(everything, number, homes, measured)
    reuses = strategy in REUSING
    considered = everything if reuses else list(queries)
    lates = late if reuses else late[len(old) :]
    try:
        proxies = [number[me]] * len(considered)
        problem = _problem(_hosts(measured), considered, lates, known, proxies, bounds_ms)
        if reuses:
            problem = problem.with_running(_running(problem, standing, number))
        else:
            problem = _problem(
                _left(_hosts(measured), everything, late, known, standing, number),
                considered,
                lates,
                known,
                proxies,
                bounds_ms,
            )
        outcome = _planner(strategy)(problem) if decide is None else decide(problem)
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
            bound_ms=bounds_ms.get(query.name),
        )
        placements.append(Placement(query.name, names[part.host], fragment, task))
    fresh = {i: q.name for i, q in enumerate(queries, first)}
    refusals = tuple((fresh[r.query], r) for r in outcome.refusals if r.query in fresh)
    return Planned(problem, outcome, tuple(placements), refusals)


# --- what runs, over the network as it is


def uses_now(homes: Mapping[str, str], measured: Sequence[NodeMeasure]) -> dict[str, Use]:
    """What nodes use for all queries that are placed, at the rates and costs of now."""
    names = tuple(n.name for n in measured)
    number = {name: i for i, name in enumerate(names)}
    found = [(t, i) for i, n in enumerate(measured) for t in n.tasks if _is_there(t, number, homes)]
    if not found:
        return dict.fromkeys(names, Use())
    tasks = [t for t, _ in found]
    queries = [QueryDef(t.query, decode_plan(t.plan)) for t in tasks]
    problem = _problem(
        _hosts(measured),
        queries,
        [t.late for t in tasks],
        _known(queries, number, homes, measured),
        [proxy for _, proxy in found],
    )
    running = _running(problem, tasks, number)
    return dict.fromkeys(names, Use()) if running is None else uses_of(problem, running)


def gain_of(planned: Planned, tasks: Sequence[Task]) -> Gain:
    """Of a new plan, beside what its queries were given before."""
    problem, hosts = planned.problem, planned.problem.hosts
    number = {name: i for i, name in enumerate(hosts.names)}
    running = _running(problem, [t for t in tasks if _knows(number, t)], number)
    if running is None:
        return Gain(0.0, 0.0)
    before, after = uses_of(problem, running), uses_of(problem, planned.outcome.deployment)
    cores = {name: Use(cpu=float(c)) for name, c in zip(hosts.names, hosts.cpu, strict=True)}
    saved = sum(u.out_bps for u in before.values()) - sum(u.out_bps for u in after.values())
    return Gain(saved, overload_bps(before, cores) - overload_bps(after, cores))


def uses_of(problem: Problem, found: Deployment) -> dict[str, Use]:
    load = load_of(problem, found)
    rows = zip(load.cpu, load.out_bps, load.in_bps, strict=True)
    return {
        name: Use(*map(float, row)) for name, row in zip(problem.hosts.names, rows, strict=True)
    }


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


def _lates(
    queries: Sequence[QueryDef],
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    were_late: Mapping[str, bool] | None,
) -> list[bool]:
    known = were_late or {}
    return [known[q.name] if q.name in known else _is_late(q, homes, measured) for q in queries]


def _is_there(task: Task, number: Mapping[str, int], homes: Mapping[str, str]) -> bool:
    """Whether all that a task needs is still known."""
    streams = base_streams(decode_plan(task.plan))
    return _knows(number, task) and all(homes.get(s.name) in number for s in streams)


def _knows(number: Mapping[str, int], task: Task) -> bool:
    nodes = {n for n, _ in task.runs} | {n for a, b, _ in task.sends for n in (a, b)}
    return nodes <= number.keys()


def _known(
    queries: Sequence[QueryDef],
    number: Mapping[str, int],
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
) -> Measured:
    streams = {s.name: s for q in queries for s in base_streams(q.plan)}
    return Measured(
        {name: number[homes[name]] for name in streams},
        {name: _rate(stream, homes, measured) for name, stream in streams.items()},
        cpu_per_bps=_cpu_per_bps(measured),
    )


def _problem(
    hosts: Hosts,
    queries: Sequence[QueryDef],
    late: Sequence[bool],
    known: Measured,
    proxies: Sequence[int],
    bounds_ms: Mapping[str, float] | None = None,
) -> Problem:
    wholes = [lambda node, late=x: must_be_whole(node, late=late) for x in late]
    bounds = [(bounds_ms or {}).get(q.name, inf) for q in queries]
    return problem_of_queries(hosts, queries, known, proxies, wholes, bounds)


def _running(
    problem: Problem, tasks: Sequence[Task], number: Mapping[str, int]
) -> Deployment | None:
    """What runs already; a query one of whose operators is not known any more is left out."""
    operators = {n: i for i, n in enumerate(problem.operators.names)}
    streams = {n: i for i, n in enumerate(problem.streams.names)}
    queries = {n: i for i, n in enumerate(problem.queries.names)}
    runs: set[tuple[int, int]] = set()
    sends: set[tuple[int, int, int]] = set()
    serves: dict[int, int] = {}
    for task in tasks:
        i = queries.get(task.query)
        if i is None:
            continue
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
    problem = _problem(hosts, queries, late, known, [0] * len(queries))
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
