"""The scalar functions of `thalweg.plan.functions`, by the same names.

An implementation takes the call's type, then the arguments. Where the function is strict it never
sees a NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thalweg.engine.reference import arithmetic, temporal, text
from thalweg.engine.reference.buckets import bucket

Implementation = Callable[..., Any]


def conjunction(*args: bool | None) -> bool | None:
    if False in args:
        return False
    return None if None in args else True


def disjunction(*args: bool | None) -> bool | None:
    if True in args:
        return True
    return None if None in args else False


def contained(value: Any, *candidates: Any) -> bool | None:
    """value IN (candidates): as the OR of the comparisons would be."""
    return disjunction(*(None if value is None or c is None else value == c for c in candidates))


def coalesce(*args: Any) -> Any:
    return next((value for value in args if value is not None), None)


def nullif(value: Any, *others: Any) -> Any:
    return None if contained(value, *others) else value


def extract(part: str, value: Any) -> int:
    if isinstance(value, int):
        return temporal.extract_of_interval(part, value)
    return temporal.extract(part, value)


def power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    return math.pow(base, exponent)


def _plain(function: Callable[..., Any]) -> Implementation:
    """For functions whose result does not depend on the call's type."""
    return lambda _, *args: function(*args)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "=": _plain(lambda a, b: a == b),
    "<>": _plain(lambda a, b: a != b),
    "<": _plain(lambda a, b: a < b),
    "<=": _plain(lambda a, b: a <= b),
    ">": _plain(lambda a, b: a > b),
    ">=": _plain(lambda a, b: a >= b),
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.remainder,
    "and": _plain(conjunction),
    "or": _plain(disjunction),
    "not": _plain(lambda a: not a),
    "is_null": _plain(lambda a: a is None),
    "is_not_null": _plain(lambda a: a is not None),
    "in": _plain(contained),
    "like": _plain(text.like),
    "coalesce": _plain(coalesce),
    "bucket": _plain(bucket),
    "nullif": _plain(nullif),
    "greatest": _plain(lambda *args: max(args)),
    "least": _plain(lambda *args: min(args)),
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "sign": arithmetic.sign,
    "floor": arithmetic.floor,
    "ceil": arithmetic.ceil,
    "round": arithmetic.round_to,
    "sqrt": arithmetic.double_function(math.sqrt),
    "exp": arithmetic.double_function(math.exp),
    "ln": arithmetic.double_function(math.log),
    "power": arithmetic.double_function(power),
    "upper": _plain(str.upper),
    "lower": _plain(str.lower),
    "length": _plain(len),
    "trim": _plain(lambda s: s.strip(" ")),
    "ltrim": _plain(lambda s: s.lstrip(" ")),
    "rtrim": _plain(lambda s: s.rstrip(" ")),
    "substring": _plain(text.substring),
    "replace": _plain(text.replace),
    "position": _plain(text.position),
    "starts_with": _plain(str.startswith),
    "has_any": _plain(text.has_any),
    "||": _plain(lambda a, b: a + b),
    "extract": _plain(extract),
    "date_trunc": _plain(temporal.date_trunc),
    "add_months": _plain(temporal.add_months),
}
