"""NOT goes inward until it meets a comparison, which it turns into its opposite.

All of this holds with NULL too: De Morgan's laws are those of three-valued logic.
"""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.comparisons import DENIED


def push_not(expr: Expr) -> Expr:
    if not (isinstance(expr, Call) and expr.function == "not"):
        return expr
    return _denied(expr.args[0], expr)


def _denied(inner: Expr, unchanged: Expr) -> Expr:
    if not isinstance(inner, Call):
        return unchanged
    match inner.function:
        case "not":
            return inner.args[0]
        case "and" | "or":
            other = "or" if inner.function == "and" else "and"
            return Call(other, tuple(Call("not", (a,), BOOLEAN) for a in inner.args), BOOLEAN)
        case "in":
            value, *options = inner.args
            return Call("and", tuple(Call("<>", (value, o), BOOLEAN) for o in options), BOOLEAN)
        case "is_null":
            return Call("is_not_null", inner.args, BOOLEAN)
        case "is_not_null":
            return Call("is_null", inner.args, BOOLEAN)
        case name if name in DENIED:
            return Call(DENIED[name], inner.args, BOOLEAN)
        case _:
            return unchanged
