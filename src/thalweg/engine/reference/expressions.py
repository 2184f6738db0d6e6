"""The value of an expression on one row."""

from __future__ import annotations

from typing import Any

from thalweg.engine.arrivals import Row
from thalweg.engine.reference.casts import cast_value
from thalweg.engine.reference.scalars import IMPLEMENTATIONS
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit
from thalweg.plan.functions import FUNCTIONS


def evaluate(expr: Expr, row: Row) -> Any:
    match expr:
        case Col(index, _, _):
            return row[index]
        case Lit(value, _):
            return value
        case Cast(arg, target):
            return cast_value(evaluate(arg, row), arg.type, target)
        case Case(branches, otherwise, _):
            taken = (result for condition, result in branches if holds(condition, row))
            return evaluate(next(taken, otherwise), row)
        case Call(function, args, result):
            values = [evaluate(arg, row) for arg in args]
            if FUNCTIONS[function].strict and None in values:
                return None
            return IMPLEMENTATIONS[function](result, *values)


def holds(predicate: Expr, row: Row) -> bool:
    """Whether a condition is true; false and NULL are alike here."""
    return evaluate(predicate, row) is True
