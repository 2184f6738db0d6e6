"""What constants alone decide: comparisons, AND, OR and NOT of them, sums of whole numbers.

Only what every engine computes in the same way as Python is folded; all else stays as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from thalweg.plan.expr import FALSE, TRUE, Call, Expr, Lit
from thalweg.plan.types import BIGINT, BOOLEAN, INTERVAL
from thalweg.sharing.comparisons import COMPARISONS

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "neg": operator.neg,
}
_UNKNOWN = Lit(None, BOOLEAN)


def fold_constants(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    if expr.function in ("and", "or"):
        return _logic(expr)
    if not all(isinstance(a, Lit) for a in expr.args):
        # A comparison with NULL is NULL whatever the other side is.
        if expr.function in COMPARISONS and any(_is_null(a) for a in expr.args):
            return _UNKNOWN
        return expr
    values = [a.value for a in expr.args if isinstance(a, Lit)]
    if expr.function == "not":
        return Lit(None if values[0] is None else not values[0], BOOLEAN)
    if expr.function in _COMPARE:
        return _UNKNOWN if None in values else Lit(_COMPARE[expr.function](*values), BOOLEAN)
    if expr.function in _ARITHMETIC and expr.type in (BIGINT, INTERVAL) and None not in values:
        result = _ARITHMETIC[expr.function](*values)
        # Beyond 64 bits the value is NULL; such a query is not worth a rule.
        return Lit(result, expr.type) if -(1 << 63) <= result < 1 << 63 else expr
    return expr


def _logic(expr: Call) -> Expr:
    deciding, neutral = (FALSE, TRUE) if expr.function == "and" else (TRUE, FALSE)
    if deciding in expr.args:
        return deciding
    rest = tuple(a for a in expr.args if a != neutral)
    if len(rest) == len(expr.args) and len(rest) > 1:
        return expr
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else Call(expr.function, rest, BOOLEAN)


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.value is None
