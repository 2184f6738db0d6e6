"""AND and OR are flat, each part once and in order; sums and products of one type are in order."""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.ordering import expr_key, in_order


def order_operands(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    if expr.function in ("and", "or"):
        parts = in_order(_parts(expr, expr.function))
        if len(parts) == 1:
            return parts[0]
        return expr if parts == expr.args else Call(expr.function, parts, BOOLEAN)
    if expr.function in ("+", "*"):
        left, right = expr.args
        if left.type == right.type and expr_key(right) < expr_key(left):
            return Call(expr.function, (right, left), expr.type)
    return expr


def _parts(expr: Expr, function: str) -> list[Expr]:
    if isinstance(expr, Call) and expr.function == function:
        return [part for a in expr.args for part in _parts(a, function)]
    return [expr]
