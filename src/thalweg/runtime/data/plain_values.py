"""Values in messages of protocols: plain numbers and texts, and back.

Dates and times travel as what they count (days, microseconds), so that they compare as they should;
a DECIMAL as its text, so that it stays exact, and is compared only with its like.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from thalweg.engine.shared.frames import dtype, name
from thalweg.overlay.p2p.tuples import Value
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import Kind, SqlType

Row = tuple[Value, ...]


def rows_of(typed: pl.DataFrame, types: Sequence[SqlType]) -> list[Row]:
    """Of a frame with columns c0, c1, …"""
    if not types:
        return [()] * typed.height
    columns = [_plain(typed[name(i)], sql) for i, sql in enumerate(types)]
    return list(zip(*columns, strict=True))


def frame_of_rows(
    rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[SqlType]
) -> pl.DataFrame:
    """With typed columns again."""
    columns = {}
    for i, (column, sql) in enumerate(zip(names, types, strict=True)):
        columns[column] = _typed(column, [row[i] for row in rows], sql)
    return pl.DataFrame(columns)


def frame_of_changes(
    mirror: StreamDef, changes: Sequence[tuple[int, str, Sequence[Any]]]
) -> pl.DataFrame:
    """Changes of a relation (instant, op, row), as its mirror is fed with them."""
    names, types = zip(*((f.name, f.type) for f in mirror.fields), strict=True)
    frame = frame_of_rows([row for _, _, row in changes], names, types)
    instants = pl.Series(mirror.timestamp, [ts for ts, _, _ in changes], dtype=pl.Int64)
    if not mirror.timestamp_type.is_integer:
        instants = (instants * mirror.resolution_us).cast(pl.Datetime("us"))
    ops = pl.Series("op", [op for _, op, _ in changes], dtype=pl.String)
    return frame.with_columns(instants, ops)


def _plain(column: pl.Series, sql: SqlType) -> list[Value]:
    if sql.is_temporal:
        column = column.to_physical()
    found: list[Any] = column.to_list()
    if sql.kind is Kind.DECIMAL:
        return [None if v is None else str(v) for v in found]
    return found


def _typed(column: str, values: list[Any], sql: SqlType) -> pl.Series:
    if sql.kind is Kind.DECIMAL:
        exact = [None if v is None else Decimal(v) for v in values]
        return pl.Series(column, exact, dtype=dtype(sql))
    if sql.kind is Kind.TIMESTAMP:
        return pl.Series(column, values, dtype=pl.Int64).cast(pl.Datetime("us"))
    if sql.kind is Kind.DATE:
        return pl.Series(column, values, dtype=pl.Int32).cast(pl.Date)
    if sql.kind is Kind.DOUBLE:
        values = [None if v is None else float(v) for v in values]
    return pl.Series(column, values, dtype=dtype(sql))
