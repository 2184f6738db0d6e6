"""Whole queries: blocks, set operators, WITH, and ISTREAM, DSTREAM and RSTREAM."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.cql import syntax
from thalweg.cql.bind.blocks import bind_block
from thalweg.cql.bind.bounds import hides_windows
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.names import unique_names
from thalweg.cql.bind.ordering import first_of_block, first_of_relation
from thalweg.cql.bind.placed import bind_placed
from thalweg.cql.errors import Mistake, Span
from thalweg.plan.expr import Col, Expr
from thalweg.plan.functions import cast
from thalweg.plan.nodes import (
    Distinct,
    Node,
    Project,
    Schema,
    SetKind,
    SetOp,
    StreamKind,
    ToStream,
)
from thalweg.plan.types import NULL, SqlType, common_type


@dataclass(frozen=True, slots=True)
class Bound:
    """A query's plan, and where each of its columns was written."""

    node: Node
    spans: tuple[Span, ...]


def bind_query(query: syntax.Query, context: Context) -> Bound:
    match query:
        case syntax.Select():
            return _select(query, context)
        case syntax.SetQuery():
            return _set_query(query, context.uncorrelated())
        case syntax.TopQuery():
            return _top(query, context.uncorrelated())
        case syntax.StreamQuery():
            return _stream(query, context.uncorrelated())
        case syntax.WithQuery():
            return _with(query, context.uncorrelated())
        case syntax.PlacedQuery():
            plan = bind_placed(query, context)
            return Bound(plan, (query.span,) * len(plan.schema))


def bind_typed(query: syntax.Query, context: Context) -> Bound:
    """A query whose columns all have a type. A bare NULL may only be a side of a set operator."""
    bound = bind_query(query, context)
    for f, span in zip(bound.node.schema, bound.spans, strict=True):
        if f.type == NULL:
            hint = "say which with CAST(NULL AS …)"
            raise Mistake(f'column "{f.name}" is NULL without a type', span, hint)
    return bound


def _node(query: syntax.Query, context: Context) -> Node:
    return bind_typed(query, context).node


def _select(select: syntax.Select, context: Context) -> Bound:
    block = bind_block(select, context, _node)
    assert not block.correlation, "only sub-queries of WHERE are correlated"
    exprs = tuple(o.expr for o in block.outputs)
    if not exprs:
        raise Mistake("the result has no columns", select.span)
    node: Node = Project(block.node, exprs, unique_names(block.outputs))
    if select.distinct:
        node = Distinct(node)
    return Bound(node, tuple(o.span for o in block.outputs))


def _top(query: syntax.TopQuery, context: Context) -> Bound:
    if isinstance(query.query, syntax.Select) and not query.query.distinct:
        order = tuple(item.expr for item in query.order)
        block = bind_block(query.query, context, _node, order)
        assert not block.correlation, "only sub-queries of WHERE are correlated"
        spans = tuple(o.span for o in block.outputs[: len(block.outputs) - len(order)])
        return Bound(first_of_block(query, block, context), spans)
    bound = bind_query(query.query, context)
    return Bound(first_of_relation(query, bound.node, context), bound.spans)


def _stream(query: syntax.StreamQuery, context: Context) -> Bound:
    bound = bind_query(query.query, context)
    if bound.node.is_stream:
        raise Mistake(f"{query.kind} takes a relation, and this is a stream", query.query.span)
    kind = StreamKind[query.kind]
    if kind is StreamKind.ISTREAM and hides_windows(bound.node):
        message = "a row that is equal in two windows in a row is not new in the second"
        context.warn(message, query.query.span, "add window_end to the result")
    return Bound(ToStream(kind, bound.node), bound.spans)


def _with(query: syntax.WithQuery, context: Context) -> Bound:
    seen: set[str] = set()
    for definition in query.definitions:
        name = definition.name
        if name.text.lower() in seen:
            raise Mistake(f'WITH defines "{name.text}" twice', name.span)
        seen.add(name.text.lower())
        bound = bind_typed(definition.query, context)
        node = renamed(bound.node, definition.columns) if definition.columns else bound.node
        context = context.with_local(name.text, node)
    return bind_query(query.body, context)


def renamed(node: Node, columns: tuple[syntax.Name, ...]) -> Node:
    """The same plan under other column names, as in `CREATE VIEW v (a, b) AS …`."""
    if len(columns) != len(node.schema):
        message = f"{len(columns)} names for {len(node.schema)} columns"
        raise Mistake(message, (columns[0].span[0], columns[-1].span[1]))
    seen: set[str] = set()
    for column in columns:
        if column.text.lower() in seen:
            raise Mistake(f'two columns are named "{column.text}"', column.span)
        seen.add(column.text.lower())
    return _with_names(node, tuple(c.text for c in columns))


def _with_names(node: Node, names: tuple[str, ...]) -> Node:
    match node:
        case ToStream(kind, relation):
            return ToStream(kind, _with_names(relation, names))
        case Project(relation, exprs, _):
            return Project(relation, exprs, names)
        case _:
            return Project(node, _columns(node.schema), names)


def _columns(schema: Schema) -> tuple[Expr, ...]:
    return tuple(Col(i, f.type, f.name) for i, f in enumerate(schema))


# --- set operators ------------------------------------------------------------------------------


def _set_query(query: syntax.SetQuery, context: Context) -> Bound:
    left, right = (bind_query(q, context) for q in (query.left, query.right))
    for side, written in ((left, query.left), (right, query.right)):
        if side.node.is_stream:
            hint = f"put it round the whole: ISTREAM (… {query.kind} …)"
            raise Mistake(f"{query.kind} takes relations, and this is a stream", written.span, hint)
    if len(left.spans) != len(right.spans):
        message = f"{query.kind} of {len(left.spans)} and {len(right.spans)} columns"
        raise Mistake(message, query.span)
    types = _common_types(query, left, right)
    node = SetOp(
        SetKind[query.kind], query.all, _as_types(left.node, types), _as_types(right.node, types)
    )
    return Bound(node, left.spans)


def _common_types(query: syntax.SetQuery, left: Bound, right: Bound) -> list[SqlType]:
    types = []
    for i, (a, b) in enumerate(zip(left.node.schema, right.node.schema, strict=True), 1):
        common = common_type(a.type, b.type)
        if common is None:
            message = f"column {i} of {query.kind} is {a.type} on the left and {b.type} here"
            raise Mistake(message, right.spans[i - 1])
        types.append(common)
    return types


def _as_types(node: Node, types: list[SqlType]) -> Node:
    if [f.type for f in node.schema] == types:
        return node
    columns = node.exprs if isinstance(node, Project) else _columns(node.schema)
    exprs = tuple(cast(c, t) for c, t in zip(columns, types, strict=True))
    below = node.input if isinstance(node, Project) else node
    return Project(below, exprs, tuple(f.name for f in node.schema))
