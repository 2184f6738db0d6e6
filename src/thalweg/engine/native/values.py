"""Spark expressions for what each type can hold: what does not fit is NULL, never an error.

The session runs in ANSI mode, where Spark raises an error for what these helpers did not foresee.
"""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from thalweg.engine.native.types import spark_type
from thalweg.plan.expr import Lit
from thalweg.plan.types import BIGINT, Kind, SqlType

DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (date.min - _EPOCH).days, (date.max - _EPOCH).days
FIRST_US, LAST_US = FIRST_DAY * DAY_US, (LAST_DAY + 1) * DAY_US - 1


def literal(lit: Lit) -> Column:
    target = spark_type(lit.type)
    if lit.value is None:
        return F.lit(None).cast(target)
    # PySpark reads a naive datetime in the process's time zone, and does not take early dates.
    if isinstance(lit.value, datetime):
        return from_micros(F.lit((lit.value - datetime(1970, 1, 1)) // timedelta(microseconds=1)))
    if isinstance(lit.value, date):
        return from_days(F.lit((lit.value - _EPOCH).days))
    if lit.type.kind is Kind.DECIMAL:
        return F.lit(str(lit.value)).cast(target)
    return F.lit(lit.value).cast(target)


def zero(sql_type: SqlType) -> Column:
    """0 in the same type: compared with an INTEGER, a DECIMAL would lose digits."""
    return F.lit(0).cast(spark_type(sql_type))


def null_if(value: Column, excluded: Column) -> Column:
    return F.when(value != excluded, value)


def fit_double(value: Column) -> Column:
    """Finite values only (Spark orders NaN above infinity); -0.0 + 0.0 is 0.0."""
    return F.when(F.abs(value) <= sys.float_info.max, value + F.lit(0.0))


def decimal_text(value: Column) -> Column:
    """A DOUBLE's decimal value: the shortest text that reads back as it.

    Before Java 19, Double.toString gives some digits too many from 10^16 to 10^26 (JDK-4511638);
    so shorter forms are tried first.
    """
    shorter = [F.format_string(f"%.{digits - 1}e", value) for digits in (15, 16, 17)]
    reading_back = [F.when(text.try_cast("double") == value, text) for text in shorter]
    return F.coalesce(*reading_back, value.cast("string"))


def micros(moment: Column) -> Column:
    """Microseconds since the epoch of a TIMESTAMP; the session's time zone is UTC."""
    return F.unix_micros(moment.cast("timestamp"))


def from_micros(value: Column) -> Column:
    inside = F.when(value.between(FIRST_US, LAST_US), value)
    return F.timestamp_micros(inside).cast("timestamp_ntz")


def from_days(value: Column) -> Column:
    inside = F.when(value.between(FIRST_DAY, LAST_DAY), value)
    return F.date_from_unix_date(inside.cast("int"))


def whole_division(dividend: Column, divisor: Column) -> Column:
    """Truncated towards zero; NULL by zero, and for the one quotient that does not fit."""
    quotient = F.call_function("div", dividend, null_if(divisor, zero(BIGINT)))
    return F.when(divisor == -1, F.try_subtract(zero(BIGINT), dividend)).otherwise(
        F.when(divisor != -1, quotient)
    )
