"""Texts that stand plainly for a value of a type, a whole column at once.

The landing reads text value by value, as `docs/values.md` says, and has a reason for each that it
does not take. That is slow, and nearly always every value is plain. So a text is converted here if,
and only if, it is of a form on which Polars and the landing agree; the others are left to be read
one by one.
"""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.frames import dtype
from thalweg.plan.types import Kind, SqlType

WHOLE_IN_DOUBLE = 1 << 53  # up to here every whole number is a DOUBLE

_DATE = r"^(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-\d\d-\d\d"  # not the year 0
_CLOCK = r"[ T]\d\d:\d\d:[0-5]\d(?:\.\d{1,6})?"
_MOMENT = _DATE + _CLOCK + "Z?$"
# With an offset; years so far from the ends of time that it can't lead beyond them.
_MOMENT_WITH_OFFSET = rf"^[12]\d{{3}}-\d\d-\d\d{_CLOCK}[+-](?:[01]\d|2[0-3]):[0-5]\d$"


def plain_values(texts: pl.Series, sql: SqlType) -> pl.Series | None:
    """NULL where a text is not plain; None where there is no quick way."""
    match sql.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return texts.cast(dtype(sql), strict=False)
        case Kind.DOUBLE:
            values = texts.cast(pl.Float64, strict=False)
            # Beyond this, a whole number may not be the DOUBLE that it is read as.
            return _where(values.abs() < WHOLE_IN_DOUBLE, values)
        case Kind.DECIMAL:
            fits = rf"^[+-]?\d*\.?\d{{0,{sql.scale}}}$"
            return _where(texts.str.contains(fits), texts).cast(dtype(sql), strict=False)
        case Kind.DATE:
            plain = _where(texts.str.contains(_DATE + "$"), texts)
            return plain.str.to_date("%Y-%m-%d", strict=False)
        case Kind.TIMESTAMP:
            return _moments(texts)
        case _:
            return None


def _where(is_plain: pl.Series, values: pl.Series) -> pl.Series:
    """NULL in place of the others."""
    if is_plain.all():
        return values
    return pl.select(pl.when(is_plain).then(values)).to_series()


def _moments(texts: pl.Series) -> pl.Series:
    is_plain = texts.str.contains(_MOMENT)
    if is_plain.all():
        return _in_utc(texts)
    is_shifted = texts.str.contains(_MOMENT_WITH_OFFSET)
    if is_shifted.all():
        return _shifted(texts)
    plain = _in_utc(_where(is_plain, texts))
    if not is_shifted.any():
        return plain
    return pl.select(pl.coalesce(plain, _shifted(_where(is_shifted, texts)))).to_series()


def _in_utc(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace("T", " ", literal=True).str.strip_suffix("Z")
    return plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def _shifted(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace("T", " ", literal=True)
    moments = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", strict=False)
    return moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
