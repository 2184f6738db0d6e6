"""What a column takes of what comes in: a value exactly, or not at all.

One law for all ways in (`docs/values.md`). A value becomes one of the wanted type only if that is
the same value: nothing is rounded, cut off or taken modulo something. DOUBLE is the exception by
its nature: it takes the nearest one of a number with a point or an exponent. Whole numbers it has
to hold exactly.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from thalweg.engine.shared.expressions import rowwise
from thalweg.engine.shared.expressions.casts import cast
from thalweg.engine.shared.expressions.rowwise import row_by_row
from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.ingest.plain_texts import WHOLE_IN_DOUBLE, plain_values
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TIMESTAMP,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)

MOST_SHOWN = 100  # characters of a value in a message

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (d.toordinal() - _EPOCH.toordinal() for d in (date.min, date.max))
_FIRST_US, _LAST_US = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1
_DAY_US = 86_400_000_000
_WHOLE = re.compile(r" *[+-]?[0-9]+ *")

_SQL_TYPES: dict[type[pl.DataType], SqlType] = {
    pl.Boolean: BOOLEAN,
    pl.Float64: DOUBLE,
    pl.Float32: DOUBLE,
    pl.String: VARCHAR,
    pl.Categorical: VARCHAR,
    pl.Enum: VARCHAR,
    pl.Date: DATE,
    pl.Datetime: TIMESTAMP,
}


def sql_type(given: pl.DataType) -> SqlType | None:
    """What a column of this type is to us; None where it is nothing that we know."""
    if given.is_integer():
        return BIGINT
    if isinstance(given, pl.Decimal):
        return decimal(given.scale)
    return _SQL_TYPES.get(type(given))


def fitted(x: pl.Expr, given: pl.DataType, wanted: SqlType) -> pl.Expr:
    """The column in the wanted type; NULL where a value does not fit exactly."""
    target = dtype(wanted)
    nothing = pl.lit(None, dtype=target)
    source = sql_type(given)
    if source is None:
        return nothing
    if isinstance(given, pl.Datetime):
        x = _moment(x, given)
    elif isinstance(given, pl.Date):
        x = pl.when(x.to_physical().is_between(_FIRST_DAY, _LAST_DAY)).then(x)
    elif source.kind is Kind.VARCHAR:
        return _from_text(x.cast(pl.String), wanted)
    if source.is_numeric and wanted.is_numeric:
        return _number(x, source, given, wanted)
    if source.kind is Kind.TIMESTAMP and wanted.kind is Kind.DATE:
        return pl.when(x.to_physical() % _DAY_US == 0).then(x.cast(target))
    if source.is_temporal and wanted.is_temporal:
        return x.cast(target)
    return x if source.kind is wanted.kind else nothing


def _moment(x: pl.Expr, given: pl.Datetime) -> pl.Expr:
    """In microseconds, UTC, within the years 1 to 9999."""
    count = x.to_physical()
    match given.time_unit:
        case "ms":
            fits = count.is_between(-(-_FIRST_US // 1000), _LAST_US // 1000)
            count = count * 1000
        case "us":
            fits = count.is_between(_FIRST_US, _LAST_US)
        case _:
            fits = count % 1000 == 0
            count = count // 1000
    return pl.when(fits).then(count).cast(pl.Datetime("us"))


def _number(x: pl.Expr, source: SqlType, given: pl.DataType, wanted: SqlType) -> pl.Expr:
    target = dtype(wanted)
    if wanted.kind is Kind.DOUBLE:
        value = x.cast(pl.Float64, strict=False)
        if source.is_integer:
            return pl.when(value.cast(given, strict=False) == x).then(value)
        return pl.when(value.is_finite()).then(value + 0.0)
    if given == target:
        return x
    if source.is_integer:
        return x.cast(target, strict=False)
    if source.kind is Kind.DECIMAL:
        value = x.cast(target, strict=False)
        return pl.when(value.cast(given, strict=False) == x).then(value)
    double = x.cast(pl.Float64)
    finite = pl.when(double.is_finite()).then(double)
    if wanted.is_integer:  # beyond, several whole numbers are written as the same one
        finite = pl.when(double.abs() < WHOLE_IN_DOUBLE).then(double)
    value = cast(finite, DOUBLE, wanted)
    return pl.when(value.cast(pl.Float64) == double).then(value)


def _from_text(x: pl.Expr, wanted: SqlType) -> pl.Expr:
    if wanted.kind is Kind.VARCHAR:
        return x
    return x.map_batches(lambda texts: _read(texts, wanted), return_dtype=dtype(wanted))


def _read(texts: pl.Series, wanted: SqlType) -> pl.Series:
    """Plain texts all at once, the rest one by one: a bad value costs no more than itself."""
    quick = plain_values(texts, wanted)
    if quick is None:
        return _one_by_one(texts, wanted)
    if wanted.kind is Kind.DOUBLE:
        quick = quick + 0.0  # no -0.0
    left = quick.is_null() & texts.is_not_null()
    if not left.any():
        return quick
    slowly = _one_by_one(texts.filter(left), wanted)
    if slowly.null_count() == len(slowly):
        return quick
    places = left.cum_sum().cast(pl.Int64) - 1
    return pl.select(pl.when(left).then(slowly.gather(places)).otherwise(quick)).to_series()


def _one_by_one(texts: pl.Series, wanted: SqlType) -> pl.Series:
    match wanted.kind:
        case Kind.DECIMAL:
            return row_by_row(lambda v: exact_decimal(v, wanted.scale), dtype(wanted), [texts])
        case Kind.DOUBLE:
            return row_by_row(double_of_text, dtype(wanted), [texts])
        case _:
            frame = texts.alias("x").to_frame()
            return frame.select(cast(pl.col("x"), VARCHAR, wanted)).to_series()


def exact_decimal(text: str, scale: int) -> Decimal | None:
    value = rowwise.decimal_of_text(text, scale)
    return value if value is not None and value == Decimal(text.strip(" ")) else None


def double_of_text(text: str) -> float | None:
    value = rowwise.double_of_text(text)
    if value is None or abs(value) < WHOLE_IN_DOUBLE or not _WHOLE.fullmatch(text):
        return value
    return value if Decimal(value) == Decimal(text.strip(" ")) else None


def python_value(one: pl.Series) -> Any:
    """A column's only value; a moment that Python does not have, as Arrow's number for it."""
    if one.dtype.is_nested() or (one.dtype.is_temporal() and not _is_python_moment(one)):
        return one.to_physical()[0]
    return one[0]


def _is_python_moment(one: pl.Series) -> bool:
    """Polars panics, or raises, where a moment is none; NULL is."""
    if one.null_count():
        return True
    wanted = DATE if isinstance(one.dtype, pl.Date) else TIMESTAMP
    return (
        one.alias("x").to_frame().select(fitted(pl.col("x"), one.dtype, wanted))["x"][0] is not None
    )


def shown(column: pl.Series, row: int) -> str:
    """A value for a message: quoted, on one line, and not longer than one can read."""
    one = column.slice(row, 1)
    if one.dtype.is_temporal() and not _is_python_moment(one):
        return f"'{one.to_physical()[0]}' (as {one.dtype})"
    text = str(python_value(one))
    short = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:MOST_SHOWN])
    return f"'{short}…'" if len(text) > MOST_SHOWN else f"'{short}'"
