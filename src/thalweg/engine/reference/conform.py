"""Input values in the one form that their column's type allows."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from thalweg.engine.reference.numeric import fit_double, fit_integer, nearest_decimal
from thalweg.plan.types import Kind, SqlType

_CARRIERS: dict[Kind, object] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.VARCHAR: str,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
}


def conform(value: Any, sql_type: SqlType) -> Any:
    """The value itself, with DECIMALs at their scale and no DOUBLE that is -0.0 or not finite.

    A value of another type is the fault of the source that delivered it, and is refused.
    """
    if value is None:
        return None
    if type(value) is not _CARRIERS[sql_type.kind]:
        raise TypeError(f"{value!r} does not carry a value of type {sql_type}")
    match sql_type.kind:
        case Kind.DOUBLE:
            return fit_double(value)
        case Kind.DECIMAL:
            return nearest_decimal(Fraction(value), sql_type.scale)
        case Kind.INTEGER | Kind.BIGINT:
            return fit_integer(value, sql_type.kind)
        case _:
            return value
