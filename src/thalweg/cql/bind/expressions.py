"""Syntax to typed expressions over the columns of one block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.cql import syntax
from thalweg.cql.bind.calls import bind_call, check_known, typed_call
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.grouping import Aggregates
from thalweg.cql.bind.literals import align
from thalweg.cql.bind.scope import OUTER, Scope
from thalweg.cql.errors import Mistake, Span, closest
from thalweg.plan import functions
from thalweg.plan.aggregates import AGGREGATES, AggCall
from thalweg.plan.expr import Col, Expr, Lit, conjunction
from thalweg.plan.functions import TypeMismatch
from thalweg.plan.types import BIGINT, BOOLEAN, INTEGER, INTERVAL, NULL, VARCHAR

Predicate = syntax.Exists | syntax.InQuery


class ExpressionBinder:
    """Binds the expressions of one clause.

    What a clause admits is said at the start: aggregates (SELECT, HAVING), sub-queries (`answer` as
    predicates, `value` as values), columns of the enclosing block (WHERE), names of the select list
    (GROUP BY, HAVING, ORDER BY).
    """

    def __init__(
        self,
        scope: Scope,
        context: Context,
        clause: str,
        *,
        aggregates: Aggregates | None = None,
        answer: Callable[[Predicate, ExpressionBinder], Expr] | None = None,
        value: Callable[[syntax.ScalarQuery], Expr] | None = None,
        aliases: dict[str, syntax.Expr] | None = None,
    ) -> None:
        self.scope = scope
        self.context = context
        self.clause = clause
        self._aggregates = aggregates
        self._answer = answer
        self._value = value
        self._aliases = aliases or {}
        self.uses: list[tuple[int, Span]] = []  # columns outside of aggregates, and where

    def for_clause(self, clause: str, aliases: dict[str, syntax.Expr]) -> ExpressionBinder:
        """A binder for another clause of the block, with the same aggregates."""
        other = ExpressionBinder(
            self.scope,
            self.context,
            clause,
            aggregates=self._aggregates,
            value=self._value,
            aliases=aliases,
        )
        other.uses = self.uses
        return other

    def bind(self, expr: syntax.Expr) -> Expr:
        handler: Callable[[ExpressionBinder, Any], Expr] = _HANDLERS[type(expr)]
        return handler(self, expr)

    def condition(self, expr: syntax.Expr, what: str) -> Expr:
        """An expression that must be BOOLEAN."""
        bound = self.bind(expr)
        if bound.type not in (BOOLEAN, NULL):
            raise Mistake(f"{what} takes a condition, not {bound.type}", expr.span)
        return functions.cast(bound, BOOLEAN)

    def _bind_all(self, exprs: Sequence[syntax.Expr]) -> list[Expr]:
        return [self.bind(e) for e in exprs]

    def _call(self, name: str, span: Span, *args: syntax.Expr) -> Expr:
        return typed_call(name, self._bind_all(args), [a.span for a in args], span)

    # --- columns and constants ------------------------------------------------------------------

    def _column(self, ref: syntax.ColumnRef) -> Expr:
        found = self.scope.find(ref)
        if found is not None:
            self.uses.append((found.index, ref.span))
            return found
        if ref.qualifier is None and ref.name.lower() in self._aliases:
            return self._alias(self._aliases[ref.name.lower()])
        outer = self._outer_column(ref)
        if outer is not None:
            return outer
        if ref.quoted:
            return self._quoted_string(ref)
        mistake = self.scope.unknown(ref)
        if mistake.hint is None and ref.qualifier is None and self.clause in ("WHERE", "HAVING"):
            mistake.hint = f"a string is written in single quotes: '{ref.name}'"
        raise mistake

    def _alias(self, expr: syntax.Expr) -> Expr:
        # Without the aliases, so that `SELECT a + 1 AS b, b + 1 AS a` can't turn in a circle.
        aliases, self._aliases = self._aliases, {}
        bound = self.bind(expr)
        self._aliases = aliases
        return bound

    def _outer_column(self, ref: syntax.ColumnRef) -> Expr | None:
        scope, level = self.scope.outer, 1
        while scope is not None:
            found = scope.find(ref)
            if found is not None:
                break
            scope, level = scope.outer, level + 1
        else:
            return None
        if level > 1:
            message = f'"{ref.name}" belongs to a query further out than the enclosing one'
            raise Mistake(message, ref.span, "a sub-query sees the query right around it")
        if not (self.clause == "WHERE" and self.context.is_correlated):
            message = f'"{ref.name}" belongs to the enclosing query'
            raise Mistake(
                message, ref.span, "only the WHERE of the sub-query itself may refer to it"
            )
        return Col(OUTER + found.index, found.type, found.name)

    def _quoted_string(self, ref: syntax.ColumnRef) -> Expr:
        near = closest(ref.name, self.scope.column_names())
        if near is not None:
            message = f'"{ref.name}" is not a column here, so it is taken as a string'
            self.context.warn(message, ref.span, f'did you mean "{near}"?')
        return Lit(ref.name, VARCHAR)

    def _literal(self, literal: syntax.Literal) -> Expr:
        holes = self.context.holes
        if holes is not None and self.clause in ("WHERE", "ON"):
            return holes.constant(literal)
        return Lit(literal.value, literal.type)

    def _interval(self, literal: syntax.IntervalLiteral) -> Expr:
        if literal.months:
            message = "months and years have no fixed length"
            hint = "they can be added to or subtracted from a DATE or TIMESTAMP, nothing else"
            raise Mistake(message, literal.span, hint)
        return Lit(literal.microseconds, INTERVAL)

    # --- operators ------------------------------------------------------------------------------

    def _negation(self, expr: syntax.Negation) -> Expr:
        return self._call("neg", expr.span, expr.arg)

    def _arithmetic(self, expr: syntax.Arithmetic) -> Expr:
        right = expr.right
        if expr.operator in "+-" and isinstance(right, syntax.IntervalLiteral) and right.months:
            months = right.months if expr.operator == "+" else -right.months
            args = [self.bind(expr.left), Lit(months, BIGINT)]
            return typed_call("add_months", args, [expr.left.span, right.span], expr.span)
        return self._call(expr.operator, expr.span, expr.left, right)

    def _comparison(self, expr: syntax.Comparison) -> Expr:
        operands = [expr.first, *(operand for _, operand in expr.steps)]
        bound = self._bind_all(operands)
        parts = []
        for i, (operator, right) in enumerate(expr.steps):
            spans = (operands[i].span, right.span)
            span = (spans[0][0], spans[1][1])
            parts.append(typed_call(operator, bound[i : i + 2], spans, span))
        return conjunction(parts)

    def _logical(self, expr: syntax.Logical) -> Expr:
        args = tuple(self.condition(a, expr.operator.upper()) for a in expr.args)
        return conjunction(args) if expr.operator == "and" else functions.call("or", *args)

    def _not(self, expr: syntax.Not) -> Expr:
        return functions.call("not", self.condition(expr.arg, "NOT"))

    def _negate_if(self, negated: bool, expr: Expr) -> Expr:
        return functions.call("not", expr) if negated else expr

    def _is_null(self, expr: syntax.IsNull) -> Expr:
        name = "is_not_null" if expr.negated else "is_null"
        return functions.call(name, self.bind(expr.arg))

    def _like(self, expr: syntax.Like) -> Expr:
        return self._negate_if(expr.negated, self._call("like", expr.span, expr.arg, expr.pattern))

    def _between(self, expr: syntax.Between) -> Expr:
        arg, low, high = self._bind_all((expr.arg, expr.low, expr.high))
        above = typed_call(">=", [arg, low], [expr.arg.span, expr.low.span], expr.span)
        below = typed_call("<=", [arg, high], [expr.arg.span, expr.high.span], expr.span)
        return self._negate_if(expr.negated, conjunction([above, below]))

    def _in_list(self, expr: syntax.InList) -> Expr:
        found = self._call("in", expr.span, expr.arg, *expr.items)
        return self._negate_if(expr.negated, found)

    def _subquery(self, expr: Predicate) -> Expr:
        if self._answer is None:
            what = "EXISTS" if isinstance(expr, syntax.Exists) else "IN with a sub-query"
            hint = "move it to WHERE, or join with the sub-query"
            raise Mistake(f"{what} stands in WHERE, not in {self.clause}", expr.span, hint)
        return self._answer(expr, self)

    def _scalar(self, query: syntax.ScalarQuery) -> Expr:
        if self._value is None:
            message = f"a sub-query used as a value can't stand in {self.clause}"
            raise Mistake(message, query.span, "it stands in a query's clauses; or join with it")
        return self._value(query)

    # --- CASE, CAST and calls -------------------------------------------------------------------

    def _case(self, expr: syntax.CaseWhen) -> Expr:
        values = [v for _, v in expr.branches]
        if expr.otherwise is not None:
            values.append(expr.otherwise)
        bound = align(self._bind_all(values), [v.span for v in values])
        conditions = self._case_conditions(expr)
        otherwise = bound[-1] if expr.otherwise is not None else None
        try:
            return functions.case(list(zip(conditions, bound, strict=False)), otherwise)
        except TypeMismatch as mismatch:
            raise Mistake(str(mismatch), expr.span) from None

    def _case_conditions(self, expr: syntax.CaseWhen) -> list[Expr]:
        if expr.operand is None:
            return [self.condition(c, "WHEN") for c, _ in expr.branches]
        operand = self.bind(expr.operand)
        span = expr.operand.span
        return [
            typed_call("=", [operand, self.bind(c)], [span, c.span], c.span)
            for c, _ in expr.branches
        ]

    def _cast(self, expr: syntax.CastTo) -> Expr:
        try:
            return functions.cast(self.bind(expr.arg), expr.type)
        except TypeMismatch as mismatch:
            raise Mistake(str(mismatch), expr.span) from None

    def _function(self, call: syntax.FunctionCall) -> Expr:
        if call.name in AGGREGATES:
            return self._aggregate(call)
        check_known(call)
        return bind_call(call, self._bind_all(call.args))

    def _aggregate(self, call: syntax.FunctionCall) -> Expr:
        name = call.name.upper()
        if self._aggregates is None:
            hint = "a condition on an aggregate goes to HAVING" if self.clause == "WHERE" else None
            raise Mistake(f"{name} can't stand in {self.clause}", call.span, hint)
        if call.star and call.name != "count":
            raise Mistake(f"{name} does not take *", call.span)
        if not call.star and len(call.args) != 1:
            raise Mistake(f"{name} takes 1 argument, not {len(call.args)}", call.span)
        inside = ExpressionBinder(self.scope, self.context, "an aggregate", value=self._value)
        arg = None if call.star else inside.bind(call.args[0])
        if arg is not None and arg.type == NULL:
            raise Mistake(f"{name} of NULL has no type", call.span, "write CAST(NULL AS …)")
        if call.only is not None:
            # Aggregates pass over NULL, so what does not pass is NULL; COUNT(*) counts what does.
            condition = inside.condition(call.only, "FILTER")
            value = Lit(1, INTEGER) if arg is None else arg
            arg = functions.case([(condition, value)])
        # The smallest of distinct values is the smallest of all.
        distinct = call.distinct and call.name not in ("min", "max")
        try:
            return self._aggregates.column(AggCall(call.name, arg, distinct), call.span)
        except TypeMismatch as mismatch:
            raise Mistake(str(mismatch), call.span) from None


_HANDLERS: dict[type, Callable[[ExpressionBinder, Any], Expr]] = {
    syntax.ColumnRef: ExpressionBinder._column,
    syntax.Literal: ExpressionBinder._literal,
    syntax.IntervalLiteral: ExpressionBinder._interval,
    syntax.Negation: ExpressionBinder._negation,
    syntax.Arithmetic: ExpressionBinder._arithmetic,
    syntax.Comparison: ExpressionBinder._comparison,
    syntax.Logical: ExpressionBinder._logical,
    syntax.Not: ExpressionBinder._not,
    syntax.IsNull: ExpressionBinder._is_null,
    syntax.Like: ExpressionBinder._like,
    syntax.Between: ExpressionBinder._between,
    syntax.InList: ExpressionBinder._in_list,
    syntax.InQuery: ExpressionBinder._subquery,
    syntax.Exists: ExpressionBinder._subquery,
    syntax.ScalarQuery: ExpressionBinder._scalar,
    syntax.CaseWhen: ExpressionBinder._case,
    syntax.CastTo: ExpressionBinder._cast,
    syntax.FunctionCall: ExpressionBinder._function,
}
