"""Rows and tables from Python, as one batch of a stream.

A column whose values all have the declared type becomes a typed column at once. Where one does not,
the column travels as text, which the landing judges row by row; what text would hide (a number
where VARCHAR is declared) is refused here, with its reason beside the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.ingest.values import MOST_SHOWN, WHOLE_IN_DOUBLE
from thalweg.engine.sources.arrow import frame_of_arrow, with_refused
from thalweg.engine.sources.errors import SourceError
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import VARCHAR, Kind, SqlType

_MOST_DIGITS = 400  # of a number: a DOUBLE has no more before the point
_MOST_BITS = 4 * _MOST_DIGITS

Row = Mapping[str, Any] | Sequence[Any]
Rows: TypeAlias = Iterable[Row] | pl.DataFrame | pa.Table | pa.RecordBatch

_CARRIERS: dict[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset({bool}),
    Kind.INTEGER: frozenset({int}),
    Kind.BIGINT: frozenset({int}),
    Kind.DOUBLE: frozenset({float, int}),
    Kind.DECIMAL: frozenset(),  # always as text, so that places beyond its scale are seen
    Kind.VARCHAR: frozenset({str}),
    Kind.DATE: frozenset({date}),
    Kind.TIMESTAMP: frozenset({datetime}),
}


def columns_of(stream: StreamDef) -> dict[str, SqlType]:
    """All that a tuple is given with: its fields, its timestamp, and a relation's `op`; a table's
    rows have neither."""
    columns = {f.name: f.type for f in stream.fields}
    if stream.is_table:
        return columns
    if stream.timestamp_index is None:
        columns[stream.timestamp] = stream.timestamp_type
    if stream.is_relation:
        columns["op"] = VARCHAR
    return columns


def frame_of(stream: StreamDef, data: Rows) -> pl.DataFrame:
    """A batch from dicts, from tuples in the order of `columns_of`, or from a table.

    A key that a dict lacks is NULL; keys are compared without case; others are passed over.
    """
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, pa.Table | pa.RecordBatch):
        return frame_of_arrow(data, columns_of(stream))
    if hasattr(data, "__arrow_c_stream__"):  # pandas, and whatever else speaks Arrow
        return frame_of_arrow(pa.table(data), columns_of(stream))
    return frame_of_rows(stream, list(data))


def frame_of_rows(stream: StreamDef, rows: Sequence[Row]) -> pl.DataFrame:
    columns = columns_of(stream)
    values = [_values(stream, columns, row) for row in rows]
    refused: dict[int, str] = {}
    frame = pl.DataFrame(
        [
            _series(name, sql, [v[i] for v in values], refused)
            for i, (name, sql) in enumerate(columns.items())
        ]
    )
    if not refused:
        return frame
    return with_refused(frame, refused, {i: _raw(rows[i]) for i in refused})


def _raw(row: Row) -> str:
    try:
        return json.dumps(row, default=str)
    except ValueError:  # a whole number of thousands of digits, an object within itself
        return _short(row)


def _values(stream: StreamDef, columns: Mapping[str, SqlType], row: Row) -> Sequence[Any]:
    if isinstance(row, Mapping):
        if all(name in row for name in columns):
            return [row[name] for name in columns]
        by_lower = {str(key).lower(): value for key, value in row.items()}
        return [row[name] if name in row else by_lower.get(name.lower()) for name in columns]
    if isinstance(row, str) or not isinstance(row, Sequence):
        raise SourceError(f"{stream.name}: a row is a dict or a tuple, not {_short(row)}")
    if len(row) != len(columns):
        raise SourceError(
            f"{stream.name}: a row has {len(columns)} values ({', '.join(columns)}), "
            f"not {_short(row)}"
        )
    return row


def _series(name: str, sql: SqlType, values: list[Any], refused: dict[int, str]) -> pl.Series:
    if _are_carried(values, sql):
        try:
            return pl.Series(name, values, dtype=dtype(sql), strict=True)
        except (pl.exceptions.PolarsError, OverflowError, TypeError, ValueError):
            pass  # a number that is too large, an aware datetime
    texts = []
    for i, value in enumerate(values):
        text = _text(value, sql)
        if text is None and value is not None:
            refused.setdefault(i, f"{name}: '{_short(value)}' is not a valid {sql}")
        texts.append(text)
    return pl.Series(name, texts, dtype=pl.String)


def _are_carried(values: list[Any], sql: SqlType) -> bool:
    """Whether all values are of the type's own kind, and none is changed on the way."""
    kinds = {type(v) for v in values} - {type(None)}
    if not kinds <= _CARRIERS[sql.kind]:
        return False
    if int in kinds:
        furthest = WHOLE_IN_DOUBLE if sql.kind is Kind.DOUBLE else 1 << 63
        wholes = [v for v in values if type(v) is int]
        return -furthest <= min(wholes) and max(wholes) < furthest
    return True


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # a whole number of thousands of digits
        return f"a value of type {type(value).__name__}"
    short = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return short.encode(errors="backslashreplace").decode()


def _text(value: Any, sql: SqlType) -> str | None:
    """The value as text that reads back as the same value; None if there is none."""
    match value:
        case str():
            return value if _is_text(value) else None
        case bool():
            return str(value).lower() if sql.kind is Kind.BOOLEAN else None
        case int() | float() | Decimal():
            return _number_text(value, sql) if sql.is_numeric else None
        case datetime():
            return _moment_text(value, sql)
        case date():
            return value.isoformat() if sql.is_temporal else None
        case _:
            return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _moment_text(value: datetime, sql: SqlType) -> str | None:
    try:
        utc = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # in another year than 1 to 9999 in UTC
        return None
    if sql.kind is Kind.DATE:
        return utc.date().isoformat() if utc.time() == time.min else None
    return utc.isoformat() if sql.is_temporal else None


def _number_text(value: float | Decimal, sql: SqlType) -> str | None:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return None
    if isinstance(value, float) and sql.is_integer and not abs(value) < WHOLE_IN_DOUBLE:
        return None  # several whole numbers are written as this one
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or abs(exact.adjusted()) > _MOST_DIGITS:
        return str(exact)  # which no type reads but DOUBLE; written out it might fill the memory
    if sql.kind is Kind.DOUBLE and not isinstance(value, int):
        return repr(float(exact))
    if sql.is_integer and exact == exact.to_integral_value():
        return str(int(exact))
    return f"{exact:f}"
