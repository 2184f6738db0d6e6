"""FROM: streams, views and sub-queries with their windows, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.expressions import ExpressionBinder
from thalweg.cql.bind.growth import warn_of_growth
from thalweg.cql.bind.scope import Scope, Source
from thalweg.cql.bind.windows import window_spec
from thalweg.cql.errors import Mistake, Span, did_you_mean
from thalweg.plan.catalog import QueryDef, StreamDef, ViewDef
from thalweg.plan.expr import Expr, conjunction, shift
from thalweg.plan.nodes import (
    Join,
    LeftJoin,
    Node,
    Scan,
    StreamKind,
    ToStream,
    Window,
    never_retracts,
)
from thalweg.plan.windows import UNBOUNDED

BindQuery = Callable[[syntax.Query, Context], Node]


@dataclass(frozen=True, slots=True)
class Rows:
    """Inputs of an inner join that is not made yet, and their columns in a row."""

    nodes: tuple[Node, ...]
    sources: tuple[Source, ...]
    spans: tuple[Span, ...]
    conditions: tuple[Expr, ...] = ()

    @property
    def width(self) -> int:
        return sum(len(s.fields) for s in self.sources)

    def beside(self, other: Rows) -> Rows:
        width = self.width
        moved = tuple(replace(s, offset=s.offset + width) for s in other.sources)
        return Rows(
            self.nodes + other.nodes,
            self.sources + moved,
            self.spans + other.spans,
            self.conditions + tuple(shift(c, width) for c in other.conditions),
        )

    def joined(self) -> Node:
        if len(self.nodes) == 1:
            return self.nodes[0]
        return Join(self.nodes, conjunction(self.conditions))


def bind_sources(
    items: tuple[syntax.FromItem, ...], context: Context, bind_query: BindQuery
) -> tuple[Node, tuple[Source, ...]]:
    """All of FROM as one relation, and the sources of its columns."""
    rows = _bind_item(items[0], context, bind_query)
    for item in items[1:]:
        rows = rows.beside(_bind_item(item, context, bind_query))
    _check_aliases(rows)
    if len(rows.nodes) > 1:
        warn_of_growth(rows.nodes, rows.spans, context)
    return rows.joined(), rows.sources


def _bind_item(item: syntax.FromItem, context: Context, bind_query: BindQuery) -> Rows:
    if isinstance(item, syntax.JoinRef):
        return _bind_join(item, context, bind_query)
    if isinstance(item, syntax.TableRef):
        node, stamp = _look_up(item.name, context)
        table, what = item.name.text, item.name.text
    else:
        node, stamp = bind_query(item.query, context.uncorrelated()), None
        table, what = None, "the sub-query"
    resolution_us = context.check_resolution(node, what, item.span)
    alias = item.alias.text if item.alias is not None else table
    relation = _windowed(node, item, what, resolution_us, (alias, table))
    source = Source(alias, relation.schema, item.span, 0, table, stamp)
    return Rows((relation,), (source,), (item.span,))


def _windowed(
    node: Node,
    item: syntax.TableRef | syntax.SubqueryRef,
    what: str,
    resolution_us: int,
    names: tuple[str | None, ...],
) -> Node:
    """A stream without a window is [Unbounded]; a relation has none, unless it only ever grows."""
    if item.window is None:
        return Window(node, UNBOUNDED) if node.is_stream else node
    if not node.is_stream:
        if isinstance(node, Scan):
            raise Mistake(f"{what} is a relation; windows stand on streams", item.window.span)
        if not never_retracts(node):
            message = f"a window stands on a stream, and {what} is a relation that takes rows back"
            raise Mistake(message, item.window.span, "make it a stream with ISTREAM")
        node = ToStream(StreamKind.ISTREAM, node)
    return Window(node, window_spec(item.window, node, resolution_us, names))


def _look_up(name: syntax.Name, context: Context) -> tuple[Node, str | None]:
    """What a name in FROM stands for, and its timestamp where that is not a column."""
    local = context.locals.get(name.text.lower())
    if local is not None:
        return local, None
    found = context.catalog.find(name.text)
    if found is not None:
        context.findings.reads[name.text] = found
    match found:
        case StreamDef() as stream:
            return Scan(stream), stream.timestamp if stream.timestamp_index is None else None
        case ViewDef(_, plan, _):
            return plan, None
        case QueryDef():
            hint = "define it with CREATE VIEW to read from it"
            raise Mistake(f'"{name.text}" is a query', name.span, hint)
        case _:
            raise _unknown(name, context)


def _unknown(name: syntax.Name, context: Context) -> Mistake:
    if context.defining is not None and context.defining.lower() == name.text.lower():
        return Mistake(f'"{name.text}" can\'t be defined by itself', name.span)
    readable = [d.name for d in context.catalog.definitions.values() if not isinstance(d, QueryDef)]
    hint = did_you_mean(name.text, [*context.locals, *readable])
    message = f'there is no stream, relation or view "{name.text}"'
    return Mistake(message, name.span, hint, unknown=name.text)


def _bind_join(item: syntax.JoinRef, context: Context, bind_query: BindQuery) -> Rows:
    left = _bind_item(item.left, context, bind_query)
    right = _bind_item(item.right, context, bind_query)
    both = left.beside(right)
    _check_aliases(both)
    condition: tuple[Expr, ...] = ()
    if item.condition is not None:
        binder = ExpressionBinder(Scope(both.sources, context.outer, "this JOIN"), context, "ON")
        condition = (binder.condition(item.condition, "ON"),)
    if not item.is_left:
        return replace(both, conditions=both.conditions + condition)
    sides = (left.joined(), right.joined())
    warn_of_growth(sides, (left.spans[0], right.spans[0]), context)
    return Rows((LeftJoin(*sides, conjunction(condition)),), both.sources, (item.span,))


def _check_aliases(rows: Rows) -> None:
    seen: set[str] = set()
    for source in rows.sources:
        if source.alias is None:
            continue
        if source.alias.lower() in seen:
            message = f'"{source.alias}" stands in FROM twice'
            raise Mistake(message, source.span, "give the two different aliases")
        seen.add(source.alias.lower())
