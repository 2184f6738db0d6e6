"""Sub-queries as values: each becomes a left join with a relation that has one row at most.

NULL is their value where there is no row. A sub-query that sees the enclosing block does so by
equalities: its rows are grouped, or the first one is taken, by the side that is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from thalweg.cql import syntax
from thalweg.cql.bind.context import BindQuery, Context
from thalweg.cql.bind.correlation import key_and_rest
from thalweg.cql.bind.grouping import DEFERRED
from thalweg.cql.bind.growth import HINT, grows
from thalweg.cql.bind.marks import Subquery
from thalweg.cql.bind.ordering import first_of_block, sort_keys
from thalweg.cql.bind.scope import OUTER
from thalweg.cql.errors import Mistake, Span
from thalweg.plan import functions
from thalweg.plan.cardinality import has_one_row_at_most
from thalweg.plan.expr import (
    Call,
    Col,
    Expr,
    Lit,
    columns_of,
    conjunction,
    remap,
    shift,
    transform,
)
from thalweg.plan.nodes import Aggregate, LeftJoin, Node, Project, TopK
from thalweg.plan.types import BIGINT, BOOLEAN, NULL

Pair = tuple[Expr, Expr]  # equal: over the enclosing block's columns, over the sub-query's


class BindBlock(Protocol):
    def __call__(
        self,
        select: syntax.Select,
        context: Context,
        bind_query: BindQuery,
        order: tuple[syntax.Expr, ...] = (),
        *,
        is_value: bool = False,
    ) -> Subquery: ...


Outer = Callable[[Expr, Span], Expr]  # moves an expression over the enclosing block's columns


@dataclass(frozen=True, slots=True)
class Scalar:
    """At most one row for each row of the enclosing block, and what is its value."""

    node: Node
    value: Expr
    span: Span = field(compare=False)
    pairs: tuple[Pair, ...] = ()

    def beside(self, node: Node, context: Context, outer: Outer) -> tuple[Node, Expr]:
        """The block's rows with the sub-query's columns behind, and its value over them."""
        if grows(node):  # a row stays as long as the value beside it may change
            message = "beside a sub-query used as a value, every tuple is kept for ever"
            context.warn(message, self.span, HINT)
        width = len(node.schema)
        equal: list[Expr] = [
            Call("=", (outer(a, self.span), shift(b, width)), BOOLEAN) for a, b in self.pairs
        ]
        return LeftJoin(node, self.node, conjunction(equal)), shift(self.value, width)


def as_it_is(expr: Expr, _: Span) -> Expr:
    return expr


class Values:
    """The sub-queries of a block's clauses. Each is a column from DEFERRED on until the rows are
    known that it stands beside; equal ones are one."""

    def __init__(self, context: Context, bind: Callable[[syntax.ScalarQuery], Scalar]) -> None:
        self._context = context
        self._bind = bind
        self._found: list[Scalar] = []

    def answer(self, query: syntax.ScalarQuery) -> Expr:
        scalar = self._bind(query)
        if scalar not in self._found:
            self._found.append(scalar)
        return Col(DEFERRED + self._found.index(scalar), scalar.value.type)

    def beside(self, node: Node, outer: Outer, exprs: list[Expr]) -> tuple[Node, list[Expr]]:
        """Rows with those that the expressions have, and the expressions with their values."""
        values: dict[int, Expr] = {}
        for place, scalar in self._used(exprs):
            node, values[place] = scalar.beside(node, self._context, outer)
        return node, [_put_in(e, values) for e in exprs]

    def beside_sides(
        self, left: Node, right: Node, condition: Expr
    ) -> tuple[Node, Node, Expr, tuple[int, ...]]:
        """The same for what a left join is made of: each value is put beside the side at which its
        sub-query looks. At last, where the sides' own columns are among all."""
        width, wider, more = len(left.schema), left, right
        of_left: dict[int, Expr] = {}
        of_right: dict[int, Expr] = {}
        for place, scalar in self._used([condition]):
            seen = {i < width for a, _ in scalar.pairs for i in columns_of(a)}
            if len(seen) > 1:
                hint = "join first, in a view or a sub-query in FROM, and compare in its WHERE"
                message = "a sub-query in the ON of a LEFT JOIN can't look at both of its sides"
                raise Mistake(message, scalar.span, hint)
            if seen == {False}:
                more, of_right[place] = scalar.beside(
                    more, self._context, lambda e, _: shift(e, -width)
                )
            else:
                wider, of_left[place] = scalar.beside(wider, self._context, as_it_is)
        behind = len(wider.schema)
        values = of_left | {p: shift(e, behind) for p, e in of_right.items()}
        moved = remap(condition, lambda i: i if i < width or i >= DEFERRED else i + behind - width)
        own = (*range(width), *range(behind, behind + len(right.schema)))
        return wider, more, _put_in(moved, values), own

    def _used(self, exprs: list[Expr]) -> list[tuple[int, Scalar]]:
        used = {i for e in exprs for i in columns_of(e) if i >= DEFERRED}
        return [(DEFERRED + i, s) for i, s in enumerate(self._found) if DEFERRED + i in used]


def is_deferred(expr: Expr) -> bool:
    """Whether it has the value of a sub-query whose rows are not known yet."""
    return any(i >= DEFERRED for i in columns_of(expr))


def _put_in(expr: Expr, values: dict[int, Expr]) -> Expr:
    return transform(expr, lambda e: values.get(e.index, e) if isinstance(e, Col) else e)


def bind_scalar(
    query: syntax.ScalarQuery, context: Context, bind_query: BindQuery, bind_block: BindBlock
) -> Scalar:
    """`context` is the one below the enclosing block, which the sub-query may see."""
    inner = query.query
    select = inner.query if isinstance(inner, syntax.TopQuery) else inner
    if not isinstance(select, syntax.Select) or select.distinct:
        return _alone(query, bind_query(inner, context.uncorrelated()))
    order = inner.order if isinstance(inner, syntax.TopQuery) else ()
    exprs = tuple(item.expr for item in order)
    block = bind_block(select, context, bind_query, exprs, is_value=not order)
    visible = len(block.outputs) - len(order)
    if visible != 1:
        raise _one_column(query, visible)
    if block.outputs[0].expr.type == NULL:
        raise Mistake("this sub-query's value is NULL without a type", query.span)
    if isinstance(inner, syntax.TopQuery):
        if block.correlation:
            return _first_of_each(query, inner, block, _where(select))
        return _alone(query, first_of_block(inner, block, context))
    if not block.correlation:
        output = block.outputs[0]
        return _alone(query, Project(block.node, (output.expr,), (output.name,)))
    if not isinstance(block.node, Aggregate) or select.group_by:
        raise _several_rows(query)
    return _of_groups(query, block, _where(select))


def _where(select: syntax.Select) -> Span:
    assert select.where is not None, "what is correlated has a condition"
    return select.where.span


def _alone(query: syntax.ScalarQuery, node: Node) -> Scalar:
    if len(node.schema) != 1:
        raise _one_column(query, len(node.schema))
    if node.is_stream or not has_one_row_at_most(node):
        raise _several_rows(query)
    field = node.schema[0]
    return Scalar(node, Col(0, field.type, field.name), query.span)


def _of_groups(query: syntax.ScalarQuery, block: Subquery, where: Span) -> Scalar:
    """An aggregate of the rows that belong to a row of the enclosing block, grouped by that."""
    assert isinstance(block.node, Aggregate)
    first = len(block.node.keys)
    counts = {first + i for i, a in enumerate(block.node.aggregates) if a.function == "count"}

    def counted(e: Expr) -> Expr:
        """Where no row matches there is no group, and a count of nothing is 0."""
        if isinstance(e, Col) and e.index in counts:
            return functions.call("coalesce", e, Lit(0, BIGINT))
        return e

    value = transform(block.outputs[0].expr, counted)
    return Scalar(block.node, value, query.span, _pairs(block.correlation, where))


def _first_of_each(
    query: syntax.ScalarQuery, top: syntax.TopQuery, block: Subquery, where: Span
) -> Scalar:
    """The first row among those that belong to a row of the enclosing block."""
    if top.limit != 1:
        raise _several_rows(query)
    pairs = _pairs(block.correlation, where)
    value, *order = (o.expr for o in block.outputs)
    exprs = [value, *(own for _, own in pairs), *order]
    names = ("value", *(f"key{i}" for i in range(1, len(exprs))))
    rows = Project(block.node, tuple(exprs), names)
    columns: list[Expr] = [Col(i, f.type, f.name) for i, f in enumerate(rows.schema)]
    partition = tuple(columns[1 : 1 + len(pairs)])
    first = TopK(rows, sort_keys(top.order, columns[1 + len(pairs) :]), 1, partition)
    compared = tuple((outer, own) for (outer, _), own in zip(pairs, partition, strict=True))
    return Scalar(first, columns[0], query.span, compared)


def _pairs(correlation: tuple[Expr, ...], where: Span) -> tuple[Pair, ...]:
    found = []
    for condition in correlation:
        own, rest = key_and_rest(condition, where)
        equality = rest(own)
        assert isinstance(equality, Call)
        found.append((remap(equality.args[1], lambda i: i - OUTER), own))
    return tuple(found)


def _one_column(query: syntax.ScalarQuery, columns: int) -> Mistake:
    return Mistake(f"a sub-query used as a value has one column, not {columns}", query.span)


def _several_rows(query: syntax.ScalarQuery) -> Mistake:
    hint = "take an aggregate without GROUP BY, or ORDER BY … LIMIT 1; or join with it"
    return Mistake("a sub-query used as a value may have one row at most", query.span, hint)
