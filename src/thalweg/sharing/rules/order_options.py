"""`x IN (…)`: each option once and in order; of one option it is an equality."""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.ordering import in_order


def order_options(expr: Expr) -> Expr:
    if not (isinstance(expr, Call) and expr.function == "in"):
        return expr
    value, *options = expr.args
    ordered = in_order(options)
    if len(ordered) == 1:
        return Call("=", (value, ordered[0]), BOOLEAN)
    return expr if ordered == expr.args[1:] else Call("in", (value, *ordered), BOOLEAN)
