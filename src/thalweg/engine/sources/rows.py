"""Rows and tables from Python, as one batch of a stream.

A column whose values all have the declared type becomes a typed column at once. Where one does not,
the column travels as text, which the landing judges row by row; what text would hide (a number
where VARCHAR is declared) is refused here, with its reason beside the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import dtype
from thalweg.engine.shared.ingest.normalise import RAW, REFUSED
from thalweg.engine.sources.errors import SourceError
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import VARCHAR, Kind, SqlType

Row = Mapping[str, Any] | Sequence[Any]
Rows: TypeAlias = Iterable[Row] | pl.DataFrame | pa.Table | pa.RecordBatch

_CARRIERS: dict[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset({bool}),
    Kind.INTEGER: frozenset({int}),
    Kind.BIGINT: frozenset({int}),
    Kind.DOUBLE: frozenset({float, int}),
    Kind.DECIMAL: frozenset({Decimal}),
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
        frame = pl.from_arrow(data)
        assert isinstance(frame, pl.DataFrame)
        return frame
    if hasattr(data, "__arrow_c_stream__"):  # pandas, and whatever else speaks Arrow
        return pl.DataFrame(data)
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
    raw = {i: json.dumps(rows[i], default=str, ensure_ascii=False) for i in refused}
    return with_refused(frame, refused, raw)


def with_refused(
    frame: pl.DataFrame, reasons: Mapping[int, str], raw: Mapping[int, str]
) -> pl.DataFrame:
    """The batch, with what its source refuses of it: by row, why and what it was."""
    rows = range(frame.height)
    return frame.with_columns(
        pl.Series(REFUSED, [reasons.get(i) for i in rows], dtype=pl.String),
        pl.Series(RAW, [raw.get(i) for i in rows], dtype=pl.String),
    )


def _values(stream: StreamDef, columns: Mapping[str, SqlType], row: Row) -> Sequence[Any]:
    if isinstance(row, Mapping):
        if all(name in row for name in columns):
            return [row[name] for name in columns]
        by_lower = {str(key).lower(): value for key, value in row.items()}
        return [row[name] if name in row else by_lower.get(name.lower()) for name in columns]
    if isinstance(row, str) or not isinstance(row, Sequence):
        raise SourceError(f"{stream.name}: a row is a dict or a tuple, not {row!r}")
    if len(row) != len(columns):
        raise SourceError(
            f"{stream.name}: a row has {len(columns)} values ({', '.join(columns)}), not {row!r}"
        )
    return row


def _series(name: str, sql: SqlType, values: list[Any], refused: dict[int, str]) -> pl.Series:
    if {type(v) for v in values} <= _CARRIERS[sql.kind] | {type(None)}:
        try:
            return pl.Series(name, values, dtype=dtype(sql), strict=True)
        except (pl.exceptions.PolarsError, OverflowError, TypeError, ValueError):
            pass  # a number that is too large, an aware datetime
    texts = []
    for i, value in enumerate(values):
        text = _text(value, sql)
        if text is None and value is not None:
            refused.setdefault(i, f"{name}: '{value}' is not a valid {sql}")
        texts.append(text)
    return pl.Series(name, texts, dtype=pl.String)


def _text(value: Any, sql: SqlType) -> str | None:
    """The value as text that reads back as the same value; None if its type can't be meant."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower() if sql.kind is Kind.BOOLEAN else None
        case int() | float() | Decimal():
            return _number_text(value, sql) if sql.is_numeric else None
        case datetime():
            utc = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            moment = utc.date() if sql.kind is Kind.DATE else utc
            return moment.isoformat() if sql.is_temporal else None
        case date():
            return value.isoformat() if sql.is_temporal else None
        case _:
            return None


def _number_text(value: float | Decimal, sql: SqlType) -> str:
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        return str(value)
    if sql.is_integer and exact == exact.to_integral_value():
        return str(int(exact))
    return repr(float(exact)) if sql.kind is Kind.DOUBLE else f"{exact:f}"
