"""Aggregate functions over the rows of one group, exactly.

NULL arguments are passed over. Sums are formed as fractions and rounded once, so that the order
of the rows does not matter and nothing drifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from thalweg.engine.arrivals import Row
from thalweg.engine.reference.expressions import evaluate
from thalweg.engine.reference.numeric import (
    fit_integer,
    nearest_decimal,
    nearest_double,
)
from thalweg.plan.aggregates import AggCall
from thalweg.plan.types import Kind


def aggregate(call: AggCall, rows: Sequence[Row]) -> Any:
    if call.arg is None:
        return len(rows)
    values = [v for v in (evaluate(call.arg, row) for row in rows) if v is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.function == "count":
        return len(values)
    if not values:
        return None
    match call.function:
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "avg":
            return nearest_double(_total(values) / len(values))
        case _:
            return _fit_sum(call, _total(values))


def _total(values: Sequence[Any]) -> Fraction:
    return sum((Fraction(value) for value in values), Fraction(0))


def _fit_sum(call: AggCall, total: Fraction) -> Any:
    match call.type.kind:
        case Kind.DOUBLE:
            return nearest_double(total)
        case Kind.DECIMAL:
            return nearest_decimal(total, call.type.scale)
        case _:
            return fit_integer(int(total), call.type.kind)
