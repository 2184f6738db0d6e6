"""Comparisons with a constant as ranges, closed wherever values can be counted one by one.

`v > 3` and `v >= 4` are one condition on a whole number. So it is for DECIMAL, DATE, TIMESTAMP,
INTERVAL and BOOLEAN, whose values have neighbours; DOUBLE and VARCHAR keep their open bounds.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Context, Decimal

from thalweg.plan.expr import Value
from thalweg.plan.types import MAX_DECIMAL_PRECISION, Kind, SqlType
from thalweg.sharing.ranges import Bound, Range

_EXACT = Context(prec=2 * MAX_DECIMAL_PRECISION)
_LARGEST = {Kind.INTEGER: (1 << 31) - 1, Kind.BIGINT: (1 << 63) - 1, Kind.INTERVAL: (1 << 63) - 1}


def range_of(comparison: str, value: Value, type_: SqlType) -> Range:
    """The values of the type for which the comparison with the constant is true."""
    match comparison:
        case "=":
            bound = Bound(value, True)
            return Range(bound, bound)
        case ">=":
            return Range(low=Bound(value, True))
        case "<=":
            return Range(high=Bound(value, True))
        case ">":
            return _beyond(value, type_, 1)
        case "<":
            return _beyond(value, type_, -1)
        case _:
            raise ValueError(f"{comparison} leaves more than one range")


def _beyond(value: Value, type_: SqlType, step: int) -> Range:
    """From the value's neighbour on; of the last value of its type there is nothing beyond."""
    open_end = Bound(value, False)
    if type_.kind in (Kind.DOUBLE, Kind.VARCHAR):
        return Range(low=open_end) if step > 0 else Range(high=open_end)
    neighbour = _neighbour(value, type_, step)
    if neighbour is None:
        return Range(open_end, open_end)
    end = Bound(neighbour, True)
    return Range(low=end) if step > 0 else Range(high=end)


def _neighbour(value: Value, type_: SqlType, step: int) -> Value:
    match value:
        case bool():
            return None if value is (step > 0) else not value
        case int():
            largest = _LARGEST[type_.kind]
            return value + step if -largest - 1 <= value + step <= largest else None
        case Decimal():
            moved = _EXACT.add(value, Decimal((step < 0, (1,), -type_.scale)))
            return moved if len(moved.as_tuple().digits) <= MAX_DECIMAL_PRECISION else None
        case datetime():
            return _moved(value, timedelta(microseconds=step))
        case date():
            return _moved(value, timedelta(days=step))
        case _:
            return None


def _moved(value: date, by: timedelta) -> date | None:
    try:
        return value + by
    except OverflowError:
        return None
