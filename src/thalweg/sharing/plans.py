"""Normal forms as plans again, so that they can be compiled, explained and judged."""

from __future__ import annotations

from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import TRUE, Call, Col, Expr, Lit, conjunction
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Schema,
    ToStream,
    Window,
)
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.core import Computed, Core, Grouped, Kept, NormalQuery, Step, WithoutRepeats
from thalweg.sharing.ranges import Range


def range_conditions(expr: Expr, values: Range) -> tuple[Expr, ...]:
    """A range as comparisons; without bounds it still keeps NULL out."""

    def compared(function: str, value: object) -> Expr:
        return Call(function, (expr, Lit(value, expr.type)), BOOLEAN)  # type: ignore[arg-type]

    low, high = values.low, values.high
    if low is not None and values.is_point:
        return (compared("=", low.value),)
    found = []
    if low is not None:
        found.append(compared(">=" if low.closed else ">", low.value))
    if high is not None:
        found.append(compared("<=" if high.closed else "<", high.value))
    return tuple(found) or (Call("is_not_null", (expr,), BOOLEAN),)


def conditions_of(core: Core) -> tuple[Expr, ...]:
    """All conditions of a core, over its leaves' columns."""
    ranges = (c for expr, values in core.ranges for c in range_conditions(expr, values))
    return (*core.joins, *ranges, *(r.condition for r in core.residuals))


def fields_of(streams: tuple[StreamDef, ...]) -> Schema:
    """The columns of a core's leaves, side by side."""
    return tuple(f for s in streams for f in s.fields)


def core_plan(core: Core, names: tuple[str, ...] | None = None) -> Node:
    windows = [Window(Scan(s), w) for s, w in zip(core.streams, core.windows, strict=True)]
    node: Node = windows[0] if len(windows) == 1 else Join(tuple(windows))
    condition = conjunction(conditions_of(core))
    if condition != TRUE:
        node = Filter(node, condition)
    return Project(node, core.outputs, names or _names(core.outputs, fields_of(core.streams)))


def query_plan(query: NormalQuery) -> Node:
    """The whole query: equal in results to the plan that it was made of."""
    node = core_plan(query.core, query.names if not query.above else None)
    for step in query.above:
        node = _step_plan(node, step)
    if tuple(f.name for f in node.schema) != query.names:
        columns = tuple(Col(i, f.type) for i, f in enumerate(node.schema))
        node = Project(node, columns, query.names)
    return node if query.kind is None else ToStream(query.kind, node)


def _step_plan(node: Node, step: Step) -> Node:
    match step:
        case Grouped(keys, calls):
            names = (*_names(keys, node.schema), *(c.function for c in calls))
            return Aggregate(node, keys, calls, names)
        case Kept(predicate):
            return Filter(node, predicate)
        case Computed(exprs):
            return Project(node, exprs, _names(exprs, node.schema))
        case WithoutRepeats():
            return Distinct(node)


def _names(exprs: tuple[Expr, ...], schema: Schema) -> tuple[str, ...]:
    return tuple(
        schema[e.index].name if isinstance(e, Col) else f"c{i}" for i, e in enumerate(exprs)
    )
