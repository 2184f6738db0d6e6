"""A condition that a row must meet: unknown is as good as false, which leaves simpler forms.

These rules hold for a whole part of WHERE, ON or HAVING, not for what stands inside an expression.
"""

from __future__ import annotations

from thalweg.plan.expr import FALSE, TRUE, Call, Col, Expr, Lit
from thalweg.plan.types import BOOLEAN


def only_if_true(condition: Expr) -> Expr:
    match condition:
        case Lit(None, _):
            return FALSE
        case Col():
            return Call("=", (condition, TRUE), BOOLEAN)
        case Call("not", (Col() as column,), _):
            return Call("=", (column, FALSE), BOOLEAN)
        case Call("=" | "<=" | ">=", (left, right), _) if left == right:
            return Call("is_not_null", (left,), BOOLEAN)
        case Call("<>" | "<" | ">", (left, right), _) if left == right:
            return FALSE
        case Call("in", (value, *options), _) if any(map(_is_null, options)):
            known = tuple(o for o in options if not _is_null(o))
            if not known:
                return FALSE
            return Call("in" if len(known) > 1 else "=", (value, *known), BOOLEAN)
        case _:
            return condition


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is None
