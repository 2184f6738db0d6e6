"""A comparison has its constant on the right; of two others, the smaller stands on the left."""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr, Lit
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.comparisons import MIRRORED
from thalweg.sharing.ordering import expr_key


def orient_comparison(expr: Expr) -> Expr:
    if not (isinstance(expr, Call) and expr.function in MIRRORED):
        return expr
    left, right = expr.args
    if isinstance(right, Lit):
        return expr
    if isinstance(left, Lit) or expr_key(right) < expr_key(left):
        return Call(MIRRORED[expr.function], (right, left), BOOLEAN)
    return expr
