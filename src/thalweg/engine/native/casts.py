"""CAST as Spark expressions, by docs/values.md. Spark's own casts of text take more than we do."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.native.types import spark_type
from thalweg.engine.native.unsupported import Unsupported
from thalweg.engine.native.values import (
    FIRST_US,
    LAST_US,
    decimal_text,
    fit_double,
    from_micros,
    micros,
)
from thalweg.plan.types import Kind, SqlType

# Whole texts, written for Java; `$` would let a line feed follow.
WHOLE = r"\A[+-]?[0-9]+\z"
POINT = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)\z"
FLOAT = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
# A clock's time, then what it is ahead of UTC: sign, hours, minutes.
MOMENT = (
    r"\A([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)"
    r"(?:Z|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?\z"
)
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def cast(value: Column, source: SqlType, target: SqlType) -> Column:
    if source == target:
        return value
    if source.kind is Kind.NULL:
        return F.lit(None).cast(spark_type(target))
    if source.kind is Kind.VARCHAR:
        return _from_text(F.trim(value), target)
    match target.kind:
        case Kind.VARCHAR:
            assert source.kind is not Kind.DOUBLE, "see limits.py"
            return value.cast("string")
        case Kind.INTEGER | Kind.BIGINT:
            return _to_whole(value, source).try_cast(spark_type(target))
        case Kind.DOUBLE:
            return fit_double(value.cast("double"))
        case Kind.BOOLEAN:
            return value != 0
        case Kind.DECIMAL if source.kind is Kind.DOUBLE:
            return decimal_text(value).try_cast(spark_type(target))
        case _:
            return value.try_cast(spark_type(target))


def _to_whole(value: Column, source: SqlType) -> Column:
    """Rounded."""
    if source.kind is Kind.DOUBLE:
        value = decimal_text(value)
    return value.try_cast("decimal(38,0)") if source.kind in (Kind.DOUBLE, Kind.DECIMAL) else value


def _from_text(text: Column, target: SqlType) -> Column:
    match target.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return _if_like(text, WHOLE).try_cast(spark_type(target))
        case Kind.DOUBLE:
            return fit_double(_if_like(text, FLOAT).try_cast("double"))
        case Kind.DECIMAL:
            return _if_like(text, POINT).try_cast(spark_type(target))
        case Kind.BOOLEAN:
            word = F.lower(text)
            return F.when(word.isin(*TRUE), True).when(word.isin(*FALSE), False)
        case Kind.DATE:
            return _moment(_if_like(text, DATE)).cast("date")
        case Kind.TIMESTAMP:
            return F.coalesce(_moment(_if_like(text, DATE)), _moment_with_offset(text))
        case _:
            raise Unsupported(f"CAST of VARCHAR to {target}", "there is no such cast")


def _moment_with_offset(text: Column) -> Column:
    """The clock's time less what it is ahead of UTC."""
    clock, sign, hours, minutes = (F.regexp_extract(text, MOMENT, i) for i in range(1, 5))
    ahead = (_number(hours) * 60 + _number(minutes)) * F.lit(60_000_000)
    return _moment(clock, F.when(sign == "-", -ahead).otherwise(ahead))


def _number(digits: Column) -> Column:
    return F.when(digits == "", "0").otherwise(digits).cast("long")


def _moment(text: Column, ahead: Column | None = None) -> Column:
    moment = micros(text.try_cast("timestamp_ntz"))
    moment = moment if ahead is None else moment - ahead
    # Spark has a year 0, and one behind 9999.
    return from_micros(F.when((moment >= FIRST_US) & (moment <= LAST_US), moment))


def _if_like(text: Column, pattern: str) -> Column:
    return F.when(text.rlike(pattern), text)
