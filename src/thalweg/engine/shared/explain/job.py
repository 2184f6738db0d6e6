"""The Spark job that a tick is: its stages, tasks and shuffles, and where a query is in them."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.explain.tree import Branch
from thalweg.engine.shared.tick.plan import Plan

_NAMES = {
    ph.Join: "join",
    ph.Aggregate: "aggregate",
    ph.Partials: "partial aggregates",
    ph.Distinct: "distinct",
    ph.SetOp: "set operation",
    ph.TolerantOf: "tolerance",
    ph.PlacedOf: "positions",
    ph.DueOf: "due rows",
    ph.RowsOf: "rows window",
    ph.TopK: "first rows",
    ph.SessionsOf: "session window",
    ph.TimeOf: "window over a derived stream",
    ph.StreamOf: "derived stream",
    ph.Changes: "relation",
    ph.Map: "filter and project",
    ph.Union: "union",
}


def describe_job(
    plan: Plan,
    query: str,
    output: ph.Ending,
    *,
    runs_on: str,
    tasks: int,
    rows_for_more_tasks: int,
    seconds_for_more_tasks: float,
) -> Branch:
    """One job for all queries; a small tick is one task, or some that divide the queries, a larger
    one a stage for each level."""
    queries = sum(len(f.outputs) for f in plan.flows)
    levels = plan.depth
    levels = max(levels, 1 + plan.level_of(output))
    has_groups = any(isinstance(o, ph.Group) for _, o in plan.outputs)
    what = "queries and groups" if has_groups else "queries"
    dividing = []
    if queries > 1 and tasks > 1:
        dividing = [
            f"or {tasks} tasks that divide the {what}, if all need {seconds_for_more_tasks} s"
        ]
    remarks = [
        f"runs on {runs_on}",
        f"{queries} {what} in {len(plan.flows)} flows share it"
        if queries > 1
        else "has this query to itself",
        f"under {rows_for_more_tasks:,} new tuples: 1 stage, 1 task, no shuffle",
        *dividing,
        f"from {rows_for_more_tasks:,} on: {_plural(levels, 'stage')} of {_plural(tasks, 'task')}, "
        f"{_plural(levels - 1, 'shuffle')}",
    ]
    stages = tuple(_stage(plan, output, level, levels) for level in range(levels))
    facts = {
        "query": query,
        "runs_on": runs_on,
        "queries": queries,
        "flows": len(plan.flows),
        "tasks": tasks,
        "stages": levels,
        "shuffles": levels - 1,
        "rows_for_more_tasks": rows_for_more_tasks,
        "seconds_for_more_tasks": seconds_for_more_tasks,
    }
    return Branch(f"One Spark job per tick, with {query} in it", tuple(remarks), stages, facts)


def _stage(plan: Plan, output: ph.Ending, level: int, levels: int) -> Branch:
    here = [op for op in _unique(ph.walk(output)) if plan.level_of(op) == level]
    reads = sorted({o.stream for o in here if isinstance(o, ph.Source | ph.BaseStream)})
    remarks = []
    if level == 0:
        remarks.append("appends new tuples to the SteMs")
    if reads:
        remarks.append(f"reads {', '.join(reads)}")
    work = [_NAMES[type(op)] for op in here if type(op) in _NAMES]
    if work:
        remarks.append(f"computes {', '.join(dict.fromkeys(work))}")
    if any(isinstance(op, ph.Output) for op in here):
        remarks.append("writes the query's rows")
    if any(isinstance(op, ph.Group) for op in here):
        remarks.append("writes the rows of the query's group")
    moved = [
        op for op in _unique(ph.walk(output)) if ph.moves(op) and plan.level_of(op) == level + 1
    ]
    if moved:
        remarks.append(f"sends rows of {_plural(len(moved), 'exchange')} on")
    if not here and not moved:
        remarks.append("nothing of this query")
    facts = {"stage": level + 1, "operators": [type(op).__name__ for op in here]}
    return Branch(f"stage {level + 1} of {levels}", tuple(remarks), (), facts)


def _unique(ops: Iterable[ph.AnyOp]) -> list[ph.AnyOp]:
    return list(dict.fromkeys(ops))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
