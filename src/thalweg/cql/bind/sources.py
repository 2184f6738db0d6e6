"""FROM: streams, views and sub-queries with their windows, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from thalweg.cql import syntax
from thalweg.cql.bind.bounds import Qualifiers
from thalweg.cql.bind.context import BindQuery, Context
from thalweg.cql.bind.expressions import ExpressionBinder
from thalweg.cql.bind.growth import warn_of_growth
from thalweg.cql.bind.scalars import Scalar, Values, as_it_is, is_deferred
from thalweg.cql.bind.scope import Scope, Source
from thalweg.cql.bind.tolerances import tolerant
from thalweg.cql.bind.windows import window_spec, with_bounds
from thalweg.cql.errors import Mistake, Span, did_you_mean
from thalweg.plan.catalog import QueryDef, SetAside, StreamDef, ViewDef
from thalweg.plan.expr import Col, Expr, conjunction, conjuncts, shift
from thalweg.plan.nodes import (
    BOUND_NAMES,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Scan,
    StreamKind,
    ToStream,
    Window,
    never_retracts,
)
from thalweg.plan.windows import UNBOUNDED, HopWindow, SessionWindow, TimeWindow

BindValue = Callable[[Scope, syntax.ScalarQuery], Scalar]


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
    items: tuple[syntax.FromItem, ...],
    context: Context,
    bind_query: BindQuery,
    bind_value: BindValue,
    bounds: Qualifiers = frozenset(),
) -> tuple[Node, tuple[Source, ...]]:
    """All of FROM as one relation, and the sources of its columns.

    `bounds` are the names by which the block speaks of its windows' bounds.
    """
    binder = _Binder(context, bind_query, bind_value, bounds)
    rows = binder.item(items[0])
    for item in items[1:]:
        rows = rows.beside(binder.item(item))
    _check_aliases(rows)
    if len(rows.nodes) > 1:
        warn_of_growth(rows.nodes, rows.spans, context)
    return rows.joined(), rows.sources


@dataclass(frozen=True, slots=True)
class _Binder:
    context: Context
    bind_query: BindQuery
    bind_value: BindValue
    bounds: Qualifiers

    def item(self, item: syntax.FromItem) -> Rows:
        if isinstance(item, syntax.JoinRef):
            return self._join(item)
        context = self.context
        if isinstance(item, syntax.TableRef):
            node, stamp = _look_up(item.name, context)
            table, what = item.name.text, item.name.text
            if item.with_position:
                node = _placed(node, item)
        else:
            node, stamp = self.bind_query(item.query, context.uncorrelated()), None
            table, what = None, "the sub-query"
        resolution_us = context.check_resolution(node, what, item.span)
        alias = item.alias.text if item.alias is not None else table
        if item.tolerance is not None:
            node = tolerant(item.tolerance, node, what, resolution_us, (alias, table))
        relation = self._windowed(node, item, what, resolution_us, (alias, table))
        has_bounds = isinstance(relation, Window) and relation.spec.bounds is not None
        hidden = len(BOUND_NAMES) if has_bounds else 0
        source = Source(alias, relation.schema, item.span, 0, table, stamp, hidden)
        return Rows((relation,), (source,), (item.span,))

    def _windowed(
        self,
        node: Node,
        item: syntax.TableRef | syntax.SubqueryRef,
        what: str,
        resolution_us: int,
        names: tuple[str | None, ...],
    ) -> Node:
        """A stream without a window is [Unbounded]; a relation has none, unless it only grows."""
        if item.window is None:
            return Window(node, UNBOUNDED) if node.is_stream else node
        if not node.is_stream:
            if isinstance(node, Scan):
                kind = "table" if node.stream.is_table else "relation"
                raise Mistake(f"{what} is a {kind}; windows stand on streams", item.window.span)
            if not never_retracts(node):
                message = (
                    f"a window stands on a stream, and {what} is a relation that takes rows back"
                )
                raise Mistake(message, item.window.span, "make it a stream with ISTREAM")
            node = ToStream(StreamKind.ISTREAM, node)
        spec = window_spec(item.window, node, resolution_us, names)
        if isinstance(spec, TimeWindow):
            _warn_of_both_ends(item.window, spec, self.context)
        elif isinstance(spec, HopWindow | SessionWindow) and self._are_named(names[0]):
            spec = with_bounds(spec, node, resolution_us, item.window.span)
        return Window(node, spec)

    def _are_named(self, alias: str | None) -> bool:
        """Whether the block may mean this window's bounds."""
        return None in self.bounds or (alias is not None and alias.lower() in self.bounds)

    def _join(self, item: syntax.JoinRef) -> Rows:
        left, right = self.item(item.left), self.item(item.right)
        both = left.beside(right)
        _check_aliases(both)
        scope = Scope(both.sources, self.context.outer, "this JOIN")
        values = Values(self.context, lambda query: self.bind_value(scope, query))
        parts: tuple[Expr, ...] = ()
        if item.condition is not None:
            binder = ExpressionBinder(scope, self.context, "ON", value=values.answer)
            parts = conjuncts(binder.condition(item.condition, "ON"))
        if item.is_left:
            return self._left_join(item, (left, right), both, conjunction(parts), values)
        plain = tuple(p for p in parts if not is_deferred(p))
        rows = replace(both, conditions=both.conditions + plain)
        if len(plain) == len(parts):
            return rows
        if len(rows.nodes) > 1:
            warn_of_growth(rows.nodes, rows.spans, self.context)
        late = conjunction([p for p in parts if is_deferred(p)])
        node, (predicate,) = values.beside(rows.joined(), as_it_is, [late])
        return Rows(
            (_only(Filter(node, predicate), range(both.width)),), both.sources, (item.span,)
        )

    def _left_join(
        self,
        item: syntax.JoinRef,
        sides: tuple[Rows, Rows],
        both: Rows,
        condition: Expr,
        values: Values,
    ) -> Rows:
        left, right = (side.joined() for side in sides)
        warn_of_growth((left, right), [side.spans[0] for side in sides], self.context)
        left, right, condition, own = values.beside_sides(left, right, condition)
        node: Node = LeftJoin(left, right, condition)
        if len(own) < len(node.schema):
            node = _only(node, own)
        return Rows((node,), both.sources, (item.span,))


def _only(node: Node, places: Sequence[int]) -> Node:
    """Some of its columns."""
    kept = [Col(i, node.schema[i].type, node.schema[i].name) for i in places]
    return Project(node, tuple(kept), tuple(c.name for c in kept))


def _warn_of_both_ends(window: syntax.Window, spec: TimeWindow, context: Context) -> None:
    """Who writes a slide of the window's own length means windows that touch, not overlap."""
    if spec.slide > 1 and spec.length == spec.slide:
        assert isinstance(window, syntax.RangeWindow)
        assert window.length is not None
        start, end = window.length.span
        message = "this window holds both its ends: a tuple on a boundary is in two windows"
        length = context.text[start:end]
        context.warn(message, window.span, f"write [Tumble {length}] for windows that only touch")


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
        case SetAside(_, kind, _, reason):
            message = f'{kind} "{name.text}" is set aside: {reason}'
            raise Mistake(message, name.span, "replace it, or drop it and create it anew")
        case QueryDef():
            hint = "define it with CREATE VIEW to read from it"
            raise Mistake(f'"{name.text}" is a query', name.span, hint)
        case _:
            raise _unknown(name, context)


def _placed(node: Node, item: syntax.TableRef) -> Node:
    if not isinstance(node, Scan) or node.stream.is_relation:
        message = f"{item.name.text} is not a base stream: only tuples of those have a position"
        raise Mistake(message, item.span, "leave WITH POSITION out")
    return Scan(node.stream.placed())


def _unknown(name: syntax.Name, context: Context) -> Mistake:
    if context.defining is not None and context.defining.lower() == name.text.lower():
        return Mistake(f'"{name.text}" can\'t be defined by itself', name.span)
    readable = [d.name for d in context.catalog.definitions.values() if not isinstance(d, QueryDef)]
    hint = did_you_mean(name.text, [*context.locals, *readable])
    message = f'there is no stream, relation or view "{name.text}"'
    return Mistake(message, name.span, hint, unknown=name.text)


def _check_aliases(rows: Rows) -> None:
    seen: set[str] = set()
    for source in rows.sources:
        if source.alias is None:
            continue
        if source.alias.lower() in seen:
            message = f'"{source.alias}" stands in FROM twice'
            raise Mistake(message, source.span, "give the two different aliases")
        seen.add(source.alias.lower())
