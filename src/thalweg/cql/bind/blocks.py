"""One SELECT block: FROM, WHERE, GROUP BY, HAVING and the select list, up to the projection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.cql import syntax
from thalweg.cql.bind.bounds import named_bounds
from thalweg.cql.bind.context import BindQuery, Context
from thalweg.cql.bind.correlation import is_correlated, key_and_rest
from thalweg.cql.bind.expressions import ExpressionBinder
from thalweg.cql.bind.grouping import DEFERRED, Aggregates, NotGrouped, over_groups
from thalweg.cql.bind.marks import Marks, Subquery
from thalweg.cql.bind.names import Output, label
from thalweg.cql.bind.outputs import bind_order, bind_outputs
from thalweg.cql.bind.scalars import Scalar, Values, as_it_is, bind_scalar
from thalweg.cql.bind.scope import Scope
from thalweg.cql.bind.sources import bind_sources
from thalweg.cql.errors import Mistake, Span
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import TRUE, Col, Expr, Lit, columns_of, conjunction, conjuncts
from thalweg.plan.nodes import Aggregate, Filter, Node, Project
from thalweg.plan.types import NULL


def bind_block(
    select: syntax.Select,
    context: Context,
    bind_query: BindQuery,
    order: tuple[syntax.Expr, ...] = (),
    *,
    is_value: bool = False,
) -> Subquery:
    """The block's rows, its result columns over them, and conditions on the enclosing block.

    What it is ordered by are columns behind the others. A sub-query that is a value may see the
    enclosing block below an aggregate without GROUP BY.
    """
    bounds = named_bounds(select, order)

    def bind_value(scope: Scope, query: syntax.ScalarQuery) -> Scalar:
        # Equal ones are one, so their constants can't be left open.
        closed = replace(context.below(scope, True), holes=None)
        return bind_scalar(query, closed, bind_query, bind_block)

    node, sources = bind_sources(select.sources, context, bind_query, bind_value, bounds)
    scope = Scope(sources, context.outer)
    correlation: tuple[Expr, ...] = ()
    if select.where is not None:
        node, correlation = _where(select.where, node, scope, context, bind_query)
    aliases = {
        item.alias.text.lower(): item.expr
        for item in select.items
        if isinstance(item, syntax.SelectItem) and item.alias is not None
    }
    values = Values(context, lambda query: bind_value(scope, query))
    keys = _keys(select.group_by, scope, context, aliases, values)
    aggregates = Aggregates(len(node.schema))
    binder = ExpressionBinder(scope, context, "SELECT", aggregates=aggregates, value=values.answer)
    outputs = bind_outputs(select, keys, binder)
    if order:
        outputs += bind_order(order, outputs, binder.for_clause("ORDER BY", aliases))
    having = None
    if select.having is not None:
        binder = binder.for_clause("HAVING", aliases)
        having = binder.condition(select.having, "HAVING")
    if not (keys or aggregates.calls or having is not None):
        node, exprs = values.beside(node, as_it_is, [o.expr for o in outputs])
        return Subquery(node, _with_exprs(outputs, exprs), correlation)
    if not (keys or aggregates.calls):
        assert select.having is not None
        raise Mistake("HAVING needs GROUP BY or an aggregate", select.having.span)
    groups = _Groups(node, keys, aggregates, values, binder, is_value)
    return groups.block(outputs, having, correlation, select)


def _with_exprs(outputs: list[Output], exprs: list[Expr]) -> list[Output]:
    return [replace(o, expr=e) for o, e in zip(outputs, exprs, strict=True)]


def _where(
    where: syntax.Expr, node: Node, scope: Scope, context: Context, bind_query: BindQuery
) -> tuple[Node, tuple[Expr, ...]]:
    """The rows that pass, and the conditions that must wait for the enclosing block."""

    def bind_subquery(query: syntax.Query) -> Subquery:
        if isinstance(query, syntax.Select):
            return bind_block(query, context.below(scope, True), bind_query)
        bound = bind_query(query, context.below(scope, False))
        return Subquery.of_node(bound, query.span)

    def bind_value(query: syntax.ScalarQuery) -> Expr:
        scalar = bind_scalar(query, context.below(scope, True), bind_query, bind_block)
        marks.node, value = scalar.beside(marks.node, context, as_it_is)
        return value

    width = len(node.schema)
    marks = Marks(node, bind_subquery)
    binder = ExpressionBinder(scope, context, "WHERE", answer=marks.answer, value=bind_value)
    parts = conjuncts(binder.condition(where, "WHERE"))
    correlated = tuple(p for p in parts if is_correlated(p))
    local = tuple(p for p in parts if not is_correlated(p))
    node = Filter(marks.node, conjunction(local)) if local else marks.node
    if len(node.schema) > width and not _uses_marks(correlated, width, len(node.schema)):
        kept = tuple(Col(i, f.type, f.name) for i, f in enumerate(node.schema[:width]))
        node = Project(node, kept, tuple(c.name for c in kept))
    return node, correlated


def _uses_marks(exprs: tuple[Expr, ...], width: int, marked_width: int) -> bool:
    return any(width <= i < marked_width for e in exprs for i in columns_of(e))


def _keys(
    group_by: tuple[syntax.Expr, ...],
    scope: Scope,
    context: Context,
    aliases: dict[str, syntax.Expr],
    values: Values,
) -> list[Output]:
    binder = ExpressionBinder(scope, context, "GROUP BY", aliases=aliases, value=values.answer)
    keys = []
    for expr in group_by:
        bound = binder.bind(expr)
        if isinstance(bound, Lit) or bound.type == NULL:
            hint = "positions are not counted; write the column or expression itself"
            raise Mistake("GROUP BY takes a column or expression", expr.span, hint)
        if isinstance(bound, Col) and bound.index < DEFERRED:
            qualifier = scope.qualifier_of(bound.index)
            keys.append(Output(bound, bound.name, expr.span, qualifier))
        else:
            keys.append(Output(bound, label(context.text, expr.span), expr.span))
    return keys


@dataclass(frozen=True, slots=True)
class _Groups:
    """A grouped block while its clauses are moved from the input's rows to the groups' rows."""

    node: Node
    keys: list[Output]
    aggregates: Aggregates
    values: Values
    binder: ExpressionBinder
    is_value: bool

    def block(
        self,
        outputs: list[Output],
        having: Expr | None,
        correlation: tuple[Expr, ...],
        select: syntax.Select,
    ) -> Subquery:
        if correlation and not self.keys and self.is_value:
            self._check_value(outputs, select)
        elif correlation and not self.keys:
            assert select.where is not None
            # Without GROUP BY there is a row even where nothing matches; a group has none.
            hint = "group the sub-query by the column that is compared with the enclosing query"
            message = "a correlated sub-query with an aggregate needs GROUP BY"
            raise Mistake(message, select.where.span, hint)
        keys = {k.expr: k.name for k in self.keys}
        compared = []
        for condition in correlation:
            assert select.where is not None
            key, rest = key_and_rest(condition, select.where.span)
            keys.setdefault(key, key.name if isinstance(key, Col) else "key")
            compared.append((key, rest))
        places = {key: place for place, key in enumerate(keys)}
        calls = self.aggregates.calls
        names = (*keys.values(), *(label(self.binder.context.text, s) for s in calls.values()))
        node = self._aggregate(list(keys), list(calls), names)
        exprs = [self._move(e, places) for e in (*(o.expr for o in outputs), having or TRUE)]
        node, exprs = self.values.beside(node, lambda e, at: self._move(e, places, at), exprs)
        if having is not None:
            node = Filter(node, exprs[-1])
        waiting = tuple(rest(Col(places[key], key.type, keys[key])) for key, rest in compared)
        return Subquery(node, _with_exprs(outputs, exprs[:-1]), waiting)

    def _aggregate(self, keys: list[Expr], calls: list[AggCall], names: tuple[str, ...]) -> Node:
        args = [c.arg for c in calls if c.arg is not None]
        below, exprs = self.values.beside(self.node, as_it_is, [*keys, *args])
        moved = iter(exprs[len(keys) :])
        filled = (c if c.arg is None else replace(c, arg=next(moved)) for c in calls)
        return Aggregate(below, tuple(exprs[: len(keys)]), tuple(filled), names)

    def _check_value(self, outputs: list[Output], select: syntax.Select) -> None:
        """Where no row matches there is no group to look at, only aggregates of nothing."""
        if select.having is not None:
            message = "a correlated sub-query used as a value can't have HAVING"
            hint = "compare its value in the WHERE of the enclosing query"
            raise Mistake(message, select.having.span, hint)
        for output in outputs:
            self._move(output.expr, {})

    def _move(self, expr: Expr, places: dict[Expr, int], at: Span | None = None) -> Expr:
        try:
            return over_groups(expr, places, len(self.node.schema))
        except NotGrouped as problem:
            column = problem.column
            span = at or next(s for index, s in self.binder.uses if index == column.index)
            hint = f"add it to GROUP BY, or take MIN({column.name}) or another aggregate of it"
            message = f'column "{column.name}" is neither grouped nor inside an aggregate'
            raise Mistake(message, span, hint) from None
