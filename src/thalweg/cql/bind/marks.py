"""EXISTS and IN with a sub-query: each becomes a Mark node and one BOOLEAN column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from thalweg.cql import syntax
from thalweg.cql.bind.calls import typed_call
from thalweg.cql.bind.correlation import is_correlated, over_both
from thalweg.cql.bind.expressions import ExpressionBinder, Predicate
from thalweg.cql.bind.growth import grows
from thalweg.cql.bind.names import Output
from thalweg.cql.errors import Mistake, Span
from thalweg.plan import functions
from thalweg.plan.expr import Col, Expr, conjunction
from thalweg.plan.matching import possible, sure, takes_all_pairs
from thalweg.plan.nodes import Mark, Node, Window
from thalweg.plan.types import BOOLEAN
from thalweg.plan.windows import UNBOUNDED

PAIRS_HINT = (
    "its memory grows with the pairs that match; beside equalities, keep to one comparison "
    "(<, <=, >, >= or <>) of a column here with one there"
)


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query before its projection: rows, result columns over them, conditions that also see
    the enclosing block. Which columns are printed, and how often a row, does not matter to a Mark.
    """

    node: Node
    outputs: list[Output]
    correlation: tuple[Expr, ...] = ()

    @classmethod
    def of_node(cls, node: Node, span: Span) -> Subquery:
        relation = Window(node, UNBOUNDED) if node.is_stream else node
        columns = enumerate(relation.schema)
        return cls(relation, [Output(Col(i, f.type, f.name), f.name, span) for i, f in columns])


class Marks:
    """A block's rows, with more columns for each predicate and value answered so far."""

    def __init__(self, node: Node, bind_subquery: Callable[[syntax.Query], Subquery]) -> None:
        self.node = node
        self._bind_subquery = bind_subquery

    def answer(self, predicate: Predicate, binder: ExpressionBinder) -> Expr:
        if isinstance(predicate, syntax.Exists):
            return self._mark(predicate, self._bind_subquery(predicate.query), None, binder)
        args = [self._own(a, binder) for a in predicate.args]
        subquery = self._bind_subquery(predicate.query)
        match = _match(predicate, args, subquery, len(self.node.schema))
        mark = self._mark(predicate, subquery, match, binder)
        return functions.call("not", mark) if predicate.negated else mark

    def _mark(
        self,
        predicate: Predicate,
        subquery: Subquery,
        match: Expr | None,
        binder: ExpressionBinder,
    ) -> Col:
        width = len(self.node.schema)
        correlation = conjunction([over_both(c, width) for c in subquery.correlation])
        if grows(self.node) or grows(subquery.node):
            what = "EXISTS" if match is None else "IN"
            message = f"{what} keeps every tuple of an unbounded stream for ever"
            binder.context.warn(message, predicate.span, "give the streams windows")
        negated = isinstance(predicate, syntax.InQuery) and predicate.negated
        matching = possible if negated else sure
        if takes_all_pairs(matching(correlation, match), width):
            what = "EXISTS" if match is None else "IN"
            message = f"{what} compares every row of this query with every row of the sub-query"
            binder.context.warn(message, predicate.span, PAIRS_HINT)
        self.node = Mark(self.node, subquery.node, correlation, match)
        return Col(width, BOOLEAN, "mark")

    def _own(self, expr: syntax.Expr, binder: ExpressionBinder) -> Expr:
        bound = binder.bind(expr)
        if is_correlated(bound):
            message = "the left side of IN belongs to the enclosing query"
            raise Mistake(message, expr.span, "move this IN to the enclosing WHERE")
        return bound


def _match(predicate: syntax.InQuery, args: list[Expr], subquery: Subquery, width: int) -> Expr:
    if len(args) != len(subquery.outputs):
        columns = len(subquery.outputs)
        message = f"IN compares {len(args)} with {columns} columns of the sub-query"
        raise Mistake(message, predicate.span)
    parts = [
        typed_call("=", [arg, over_both(o.expr, width)], [a.span, o.span], predicate.span)
        for a, arg, o in zip(predicate.args, args, subquery.outputs, strict=True)
    ]
    return conjunction(parts)
