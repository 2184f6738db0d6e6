"""Operators and functions on numbers and moments, chosen by the arguments' types.

Whole numbers, fractions and intervals are computed exactly and then fitted into the result's type;
DOUBLE is computed in DOUBLE.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from thalweg.engine.reference.numeric import (
    decimal_value,
    fit_double,
    fit_integer,
    nearest_decimal,
    nearest_double,
    round_places,
)
from thalweg.engine.reference.temporal import add_days, add_interval, interval_between
from thalweg.plan.types import Kind, SqlType


def add(result: SqlType, left: Any, right: Any) -> Any:
    if isinstance(right, datetime):
        left, right = right, left
    if isinstance(left, datetime):
        return add_interval(left, right)
    if isinstance(left, date):
        return add_days(left, right)
    return _exactly(result, left, right, lambda a, b: a + b)


def subtract(result: SqlType, left: Any, right: Any) -> Any:
    if isinstance(left, datetime) and isinstance(right, datetime):
        return interval_between(left, right)
    if isinstance(left, date):
        return add(result, left, -right)
    return _exactly(result, left, right, lambda a, b: a - b)


def multiply(result: SqlType, left: Any, right: Any) -> Any:
    return _exactly(result, left, right, lambda a, b: a * b)


def divide(result: SqlType, left: Any, right: Any) -> Any:
    """Whole numbers truncate towards zero; DECIMALs have been cast to DOUBLE before."""
    if right == 0:
        return None
    if isinstance(left, float):
        return fit_double(left / right)
    return fit_integer(_quotient(left, right), result.kind)


def remainder(result: SqlType, left: Any, right: Any) -> Any:
    """What truncating division leaves: it has the sign of the dividend."""
    if right == 0:
        return None
    if isinstance(left, float):
        return fit_double(math.fmod(left, right))
    return _exactly(result, left, right, lambda a, b: a - b * _quotient(a, b))


def negate(result: SqlType, value: Any) -> Any:
    return _fit(result, -Fraction(value))


def absolute(result: SqlType, value: Any) -> Any:
    return _fit(result, abs(Fraction(value)))


def sign(result: SqlType, value: Any) -> Any:
    return _fit(result, Fraction((value > 0) - (value < 0)))


def floor(result: SqlType, value: Any) -> Any:
    return _fit(result, Fraction(math.floor(value)))


def ceil(result: SqlType, value: Any) -> Any:
    return _fit(result, Fraction(math.ceil(value)))


def round_to(result: SqlType, value: Any, digits: int = 0) -> Any:
    exact = decimal_value(value) if isinstance(value, float) else Fraction(value)
    return _fit(result, round_places(exact, digits))


def double_function(function: Callable[..., float]) -> Callable[..., float | None]:
    """A function on DOUBLE, NULL where it has no finite real value."""

    def apply(_: SqlType, *args: float) -> float | None:
        try:
            return fit_double(function(*args))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    return apply


# --- exact arithmetic, then fitted --------------------------------------------------------------


def _quotient(left: Any, right: Any) -> int:
    """The whole part of left / right, truncated towards zero."""
    return math.trunc(Fraction(left) / Fraction(right))


def _exactly(
    result: SqlType, left: Any, right: Any, combine: Callable[[Any, Any], Any]
) -> int | float | Decimal | None:
    if isinstance(left, float):
        return fit_double(combine(left, right))
    return _fit(result, combine(Fraction(left), Fraction(right)))


def _fit(result: SqlType, value: Fraction) -> int | float | Decimal | None:
    match result.kind:
        case Kind.DOUBLE:
            return nearest_double(value)
        case Kind.DECIMAL:
            return nearest_decimal(value, result.scale)
        case _:
            return fit_integer(int(value), result.kind)
