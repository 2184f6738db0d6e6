"""Arithmetic and functions on DATE, TIMESTAMP and INTERVAL as Spark expressions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native.values import DAY_US, from_days, from_micros, micros
from thalweg.plan.expr import Expr, Lit
from thalweg.plan.types import DATE, INTERVAL, TIMESTAMP, SqlType

INTERVAL_UNIT_US = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "epoch": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY_US,
}
MOST_MONTHS = 12 * 10_000  # beyond this every date leaves the calendar


def add(left: Column, right: Column, types: tuple[SqlType, ...]) -> Column | None:
    """None where neither side is temporal."""
    if types[1].is_temporal:
        left, right, types = right, left, types[::-1]
    if types[0] == DATE:
        return from_days(F.try_add(F.unix_date(left).cast("long"), right))
    if types[0] == TIMESTAMP:
        return from_micros(F.try_add(micros(left), right))
    return F.try_add(left, right) if types[0] == INTERVAL else None


def subtract(left: Column, right: Column, types: tuple[SqlType, ...]) -> Column | None:
    if types[0] == types[1] == TIMESTAMP:
        return micros(left) - micros(right)
    if types[0] == DATE:
        return from_days(F.try_subtract(F.unix_date(left).cast("long"), right))
    if types[0] == TIMESTAMP:
        return from_micros(F.try_subtract(micros(left), right))
    return F.try_subtract(left, right) if types[0] == INTERVAL else None


def extract(part: Expr, moment: Column, source: SqlType) -> Column:
    if source == INTERVAL:
        unit = INTERVAL_UNIT_US[_constant(part)]
        return F.call_function("div", moment, F.lit(unit).cast("long"))
    match _constant(part):
        case "dow":
            found = F.dayofweek(moment) - 1
        case "doy":
            found = F.dayofyear(moment)
        case "epoch":
            found = _whole_seconds(micros(moment))
        case plain:
            found = F.call_function(plain, moment)
    return found.cast("long")


def date_trunc(part: Expr, moment: Column) -> Column:
    unit = _constant(part)
    return from_micros(F.unix_micros(F.date_trunc(unit, moment.cast("timestamp"))))


def add_months(moment: Column, months: Column) -> Column:
    within = F.when(months.between(-MOST_MONTHS, MOST_MONTHS), months).cast("int")
    day = F.unix_date(F.add_months(moment.cast("date"), within)).cast("long")
    return from_micros(day * DAY_US + F.pmod(micros(moment), F.lit(DAY_US)))


def _constant(part: Expr) -> str:
    assert isinstance(part, Lit), "see limits.py"
    return str(part.value).lower()


def _whole_seconds(value: Column) -> Column:
    """Rounded down, also before 1970."""
    second = F.lit(10**6).cast("long")
    return F.call_function("div", value - F.pmod(value, second), second)
