"""Columns of text brought to their types at once, where all of a column's texts are plain.

The landing reads text value by value, as `docs/values.md` says, and has a reason for each that it
does not take. That is slow, and nearly always every value is plain. So a column is converted here
if, and only if, each of its values is of a form on which Polars and the landing agree; all other
columns stay text.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.ingest.values import WHOLE_IN_DOUBLE
from thalweg.plan.types import Kind, SqlType

_DATE = r"^(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-\d\d-\d\d"  # not the year 0
_CLOCK = r"[ T]\d\d:\d\d:[0-5]\d(?:\.\d{1,6})?"
_MOMENT = _DATE + _CLOCK + "Z?$"
# With an offset; years so far from the ends of time that it can't lead beyond them.
_MOMENT_WITH_OFFSET = rf"^[12]\d{{3}}-\d\d-\d\d{_CLOCK}[+-](?:[01]\d|2[0-3]):[0-5]\d$"


def typed_columns(frame: pl.DataFrame, types: Mapping[str, SqlType]) -> pl.DataFrame:
    """The frame with plain text columns in the types that are wanted."""
    return frame.with_columns(
        _typed(frame[name], sql) for name, sql in types.items() if frame.schema[name] == pl.String
    )


def _typed(texts: pl.Series, sql: SqlType) -> pl.Series:
    values = _converted(texts, sql)
    return texts if values is None or values.null_count() != texts.null_count() else values


def _converted(texts: pl.Series, sql: SqlType) -> pl.Series | None:
    """NULL where a text is not plain; None where there is no quick way."""
    match sql.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return texts.cast(dtype(sql), strict=False)
        case Kind.DOUBLE:
            values = texts.cast(pl.Float64, strict=False)
            # Beyond this, a whole number may not be the DOUBLE that it is read as.
            return values if (values.abs() < WHOLE_IN_DOUBLE).all() else None
        case Kind.DECIMAL:
            fits = rf"^[+-]?\d*\.?\d{{0,{sql.scale}}}$"
            is_plain = texts.str.contains(fits).all()
            return texts.cast(dtype(sql), strict=False) if is_plain else None
        case Kind.DATE:
            is_plain = texts.str.contains(_DATE + "$").all()
            return texts.str.to_date("%Y-%m-%d", strict=False) if is_plain else None
        case Kind.TIMESTAMP:
            if texts.str.contains(_MOMENT).all():
                return _moments(texts)
            return _shifted(texts) if texts.str.contains(_MOMENT_WITH_OFFSET).all() else None
        case _:
            return None


def _moments(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace("T", " ", literal=True).str.strip_suffix("Z")
    return plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def _shifted(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace("T", " ", literal=True)
    moments = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", strict=False)
    return moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
