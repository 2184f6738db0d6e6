"""EXPLAIN: how a query is computed, as text for people and as JSON for programs.

- `logical`: the query's plan, what it means.
- `physical`: the operators that run, with their SteMs, probing orders and state.
- `spark`: the Spark job that a tick is.
- `shared`: the group that answers a standing query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.engine.shared.compile.physical import Ending
from thalweg.engine.shared.compile.physical import walk as walk_physical
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.explain import State, describe, describe_job
from thalweg.engine.shared.explain.state import sizes
from thalweg.engine.shared.explain.tree import Branch
from thalweg.engine.shared.groups.running_group import core_of
from thalweg.engine.shared.tick.executors import Executor
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.ticks import ROWS_FOR_MORE_TASKS, SECONDS_FOR_MORE_TASKS
from thalweg.engine.site.errors import WrongUse
from thalweg.engine.site.explaining_groups import explain_sharing
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.history import still_missing
from thalweg.engine.site.status import instant_text
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Node, Tolerant, base_streams, inputs_of, walk
from thalweg.plan.shapes import shape_of
from thalweg.plan.text import node_text, plan_text
from thalweg.sharing.profile import profile
from thalweg.sharing.text import profile_text

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site

FORMS = ("logical", "physical", "spark", "shared")


def explain(site: Site, what: str, form: str) -> Explanation:
    """`what` names a standing query, or is a text with queries."""
    if form not in FORMS:
        raise WrongUse(f"EXPLAIN has the forms {', '.join(FORMS)}, not {form}")
    standing = site.catalog.find(what.strip())
    if isinstance(standing, QueryDef):
        found = _with_version(site, standing, _explained(site, standing, form))
        return _with_history(site, standing, found)
    if form == "shared":
        raise WrongUse("only a standing query is answered by a group: submit it first")
    script = site.compiler(what, site.catalog, name="<cql>")
    if not script.queries:
        raise WrongUse("the text defines no query that could be explained")
    parts = [_explained(site, query, form) for query in script.queries]
    if len(parts) == 1:
        return parts[0]
    texts = [f"{q.name}:\n{p.text}" for q, p in zip(script.queries, parts, strict=True)]
    return Explanation("\n\n".join(texts), [p.data for p in parts])


def _with_history(site: Site, query: QueryDef, found: Explanation) -> Explanation:
    """And what its windows lack of the past, while they do."""
    missing = still_missing(site, query)
    if not missing or not isinstance(found.data, dict):
        return found
    text = "\n".join([found.text, *(f"note: {line}" for line in missing)])
    return Explanation(text, {**found.data, "history": missing})


def _with_version(site: Site, query: QueryDef, found: Explanation) -> Explanation:
    lineage = site.engine.store.versions.lineage(query.name)
    if lineage is None:
        return found
    stream = shape_of(query).streams[0]
    at = instant_text(lineage.since, stream.resolution_us, stream.timestamp_type.is_temporal)
    since = "the beginning" if at is None else f"instant {at}"
    head = f"version {lineage.version}, from {since} on"
    data = {**found.data, "version": lineage.version, "since": lineage.since}
    return Explanation(f"{head}\n{found.text}", data)


def _explained(site: Site, query: QueryDef, form: str) -> Explanation:
    found = _in_form(site, query, form)
    tolerant = [n for n in walk(query.plan) if isinstance(n, Tolerant)]
    if not tolerant or not isinstance(found.data, dict):
        return found
    notes = [
        f"values are approximate: of {n.stream.name} only rows that are due pass ({node_text(n)})"
        for n in dict.fromkeys(tolerant)
    ]
    text = "\n".join([found.text, *(f"note: {line}" for line in notes)])
    return Explanation(text, {**found.data, "approximate": notes})


def _in_form(site: Site, query: QueryDef, form: str) -> Explanation:
    if form == "logical":
        data = {"query": query.name, "form": form, "plan": _logical(query.plan)}
        return Explanation(plan_text(query.plan), data)
    if form == "shared":
        return explain_sharing(site, query)
    with site.gate.between_ticks():
        plan, flow, output = _planned(site, query)
        if form == "physical":
            state = _state(site, plan, query)
            home = site.engine.roster.group_of.get(query.name)
            name = query.name if home is None else home
            found = describe(plan, flow, name, output, site.engine.streams, state)
            if home is not None:
                found = _of_member(site, query, home, found)
        else:
            executor = site.engine.executor
            found = describe_job(
                plan,
                query.name,
                output,
                runs_on=_runs_on(executor),
                tasks=executor.tasks,
                rows_for_more_tasks=ROWS_FOR_MORE_TASKS,
                seconds_for_more_tasks=SECONDS_FOR_MORE_TASKS,
            )
    return Explanation(found.text(), {"query": query.name, "form": form, "plan": found.data()})


def _of_member(site: Site, query: QueryDef, home: str, group: Branch) -> Branch:
    """What is computed for a member by itself stands above its group."""
    member, rep = (
        site.engine.roster.queries[query.name],
        site.engine.roster.groups[home].representative,
    )
    assert member.normal is not None
    kind = member.normal.kind.value if member.normal.kind else "changelog"
    remarks = (
        "its own rows of its group's"
        if site.engine.roster.groups[home].runs_aggregates
        else "made of its group's rows for whoever reads or listens",
        *profile_text(profile(core_of(member), rep), rep).splitlines(),
    )
    facts = {"operator": "Profile", "group": home, "profile": remarks[1:]}
    return Branch(f"Output {kind} of {query.name}", remarks, (group,), facts)


def _runs_on(executor: Executor) -> str:
    context = getattr(executor, "context", None)
    return f"Spark at {context.master}" if context is not None else "this process, without Spark"


def _planned(site: Site, query: QueryDef) -> tuple[Plan, Flow, Ending]:
    """The plan in which the query runs, or would run beside the others."""
    engine = site.engine
    if site.catalog.find(query.name) is query and query.name in engine.roster.queries:
        plan, run = engine.plan, engine.roster.group_of.get(query.name, query.name)
    else:
        columns = tuple(f.name for f in query.plan.schema)
        streams = tuple(sorted(s.name for s in base_streams(query.plan)))
        made = Run(query.name, columns, streams, -1, None, (), plan=query.plan)
        plan = engine.ticks.plan_for({**engine.roster.runs, query.name: made})
        run = query.name
    return next(
        (plan, flow, output) for flow in plan.flows for name, output in flow.outputs if name == run
    )


def _state(site: Site, plan: Plan, query: QueryDef) -> State:
    engine = site.engine
    is_running = query.name in engine.roster.queries
    run = engine.roster.group_of.get(query.name, query.name)
    sharers: dict[str, tuple[str, ...]] = {}
    flow = next(f for f in plan.flows if any(name == run for name, _ in f.outputs))
    for name, output in flow.outputs:
        for op in {plan.name_of(o) for o in walk_physical(output)}:
            sharers[op] = (*sharers.get(op, ()), name)
    return State(
        sizes(engine.manifest),
        engine.store.fanouts(),
        sharers,
        is_running,
        engine.ticks.shaping.records,
    )


def _logical(node: Node) -> dict[str, Any]:
    return {
        "operator": type(node).__name__,
        "text": node_text(node),
        "columns": [{"name": f.name, "type": str(f.type)} for f in node.schema],
        "inputs": [_logical(child) for child in inputs_of(node)],
    }
