"""ORDER BY … LIMIT n: the first rows of a relation."""

from __future__ import annotations

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.growth import HINT, grows
from thalweg.cql.bind.marks import Subquery
from thalweg.cql.bind.names import unique_names
from thalweg.cql.errors import Mistake
from thalweg.plan.expr import Col, Expr
from thalweg.plan.nodes import Node, Project, Schema, SortKey, TopK, never_retracts


def first_of_block(query: syntax.TopQuery, block: Subquery, context: Context) -> Node:
    """Of a block that was bound with what it is ordered by as columns behind the others."""
    visible = block.outputs[: len(block.outputs) - len(query.order)]
    order = [o.expr for o in block.outputs[len(visible) :]]
    if not visible:
        raise Mistake("the result has no columns", query.query.span)
    shown = [o.expr for o in visible]
    hidden = {o.expr: o.name for o in block.outputs[len(visible) :] if o.expr not in shown}
    exprs = [*shown, *hidden]
    rows = Project(block.node, tuple(exprs), (*unique_names(visible), *hidden.values()))
    first = _first(query, rows, [exprs.index(e) for e in order], context)
    if not hidden:
        return first
    kept = tuple(Col(i, f.type, f.name) for i, f in enumerate(rows.schema[: len(visible)]))
    return Project(first, kept, tuple(c.name for c in kept))


def first_of_relation(query: syntax.TopQuery, relation: Node, context: Context) -> Node:
    """Above DISTINCT and set operators, only the result's own columns are left to order by."""
    if relation.is_stream:
        message = "ORDER BY … LIMIT takes a relation, and this is a stream"
        raise Mistake(message, query.query.span)
    places = [_result_column(item.expr, relation.schema) for item in query.order]
    return _first(query, relation, places, context)


def sort_keys(order: tuple[syntax.OrderItem, ...], columns: list[Expr]) -> tuple[SortKey, ...]:
    """NULL is less than all values, unless it was said where it goes."""
    return tuple(
        SortKey(
            column,
            item.descending,
            item.descending if item.nulls_last is None else item.nulls_last,
        )
        for column, item in zip(columns, order, strict=True)
    )


def _first(query: syntax.TopQuery, rows: Node, places: list[int], context: Context) -> TopK:
    if grows(rows) and not never_retracts(rows):
        message = "ORDER BY … LIMIT keeps every tuple of an unbounded stream for ever"
        context.warn(message, query.order_span, HINT)
    columns: list[Expr] = [Col(i, rows.schema[i].type, rows.schema[i].name) for i in places]
    return TopK(rows, sort_keys(query.order, columns), query.limit)


def _result_column(expr: syntax.Expr, schema: Schema) -> int:
    if isinstance(expr, syntax.ColumnRef) and expr.qualifier is None:
        for place, f in enumerate(schema):
            if f.name.lower() == expr.name.lower():
                return place
    hint = f"one of {', '.join(f.name for f in schema)}"
    raise Mistake("ORDER BY takes a column of the result here", expr.span, hint)
