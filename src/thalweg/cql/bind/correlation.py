"""Conditions of a sub-query that see the enclosing block, whose columns count from OUTER."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thalweg.cql.bind.scope import OUTER
from thalweg.cql.errors import Mistake, Span
from thalweg.plan.expr import Call, Expr, columns_of, remap


def is_correlated(expr: Expr) -> bool:
    return any(index >= OUTER for index in columns_of(expr))


def over_both(expr: Expr, outer_width: int) -> Expr:
    """The expression over the enclosing block's columns followed by the sub-query's."""
    return remap(expr, lambda i: i - OUTER if i >= OUTER else i + outer_width)


def key_and_rest(condition: Expr, span: Span) -> tuple[Expr, Callable[[Expr], Expr]]:
    """For a grouped sub-query: the side of an equality that is the sub-query's own, and the
    equality with that side replaced.

    Grouping by that side too keeps apart what belongs to different rows of the enclosing block.
    Casts that the comparison inserted are part of the key: groups must be equal as it sees them.
    """
    if isinstance(condition, Call) and condition.function == "=":
        left, right = condition.args
        if is_correlated(left) != is_correlated(right):
            key, other = (right, left) if is_correlated(left) else (left, right)
            if _only_outer(other):
                return key, lambda column: replace(condition, args=(column, other))
    message = "a grouped sub-query is tied to the enclosing query by equalities only"
    raise Mistake(message, span, "write inner.column = outer.column")


def _only_outer(expr: Expr) -> bool:
    return all(index >= OUTER for index in columns_of(expr))
