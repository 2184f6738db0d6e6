"""Typed tuples with instants from whatever a batch holds; every row passes or has a reason."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from thalweg.engine.shared.expressions.casts import cast
from thalweg.engine.shared.frames import TS, W, dtype, name
from thalweg.plan.catalog import StreamDef
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

FURTHEST = 1 << 61  # instants, from zero: with a window's length added they stay 64-bit numbers
ROW = "_row"  # a tuple's place in its batch

# Columns by which a source refuses a row itself: its reason, and the row as it came (text).
REFUSED, RAW = "_refused", "_raw"


class IngestError(ValueError):
    """A batch that can't be taken as a whole: nothing of it was kept."""


@dataclass(frozen=True)
class Normalised:
    """Well-typed rows (`c…`, `_ts`, `_row`, for relations `_w`), and why others are not."""

    rows: pl.DataFrame
    rejected: pl.DataFrame  # `_row`, `_reason`


def normalise(stream: StreamDef, batch: pl.DataFrame) -> Normalised:
    """Bring a batch to the stream's types; every row passes or has a reason."""
    given = {c.lower(): c for c in batch.columns}
    frame = batch.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
    reasons: list[pl.Expr] = [pl.col(REFUSED)] if REFUSED in batch.columns else []
    columns: list[pl.Expr] = [pl.col(ROW)]
    for i, f in enumerate(stream.fields):
        if f.name.lower() in stream.added_names and f.name.lower() not in given:
            columns.append(pl.lit(None, dtype=dtype(f.type)).alias(name(i)))
            continue
        source = _column(stream, given, f.name)
        value = _typed(pl.col(source), batch.schema[source], f.type)
        columns.append(value.alias(name(i)))
        reasons.append(_mismatch(source, value, f.type))
    source = _column(stream, given, stream.timestamp)
    stamp = _typed(pl.col(source), batch.schema[source], stream.timestamp_type)
    instant = _instant(stamp, stream)
    columns.append(instant.alias(TS))
    reasons.append(_mismatch(source, stamp, stream.timestamp_type))
    reasons.append(
        pl.when(~instant.is_between(-FURTHEST, FURTHEST)).then(
            pl.lit(f"{source}: the timestamp is out of range")
        )
    )
    reasons.append(
        pl.when(pl.col(source).is_null()).then(pl.lit(f"{source}: the timestamp is missing"))
    )
    if stream.is_relation:
        op = pl.col(_column(stream, given, "op"))
        columns.append(pl.when(op == "+").then(1).when(op == "-").then(-1).cast(pl.Int64).alias(W))
        known = op.is_in(["+", "-"]).fill_null(False)
        reasons.append(pl.when(~known).then(pl.lit("op: neither + nor -")))
    typed = frame.select(*columns, pl.coalesce(reasons).alias("_reason"))
    bad = typed.filter(pl.col("_reason").is_not_null()).select(ROW, "_reason")
    good = (
        typed.filter(pl.col("_reason").is_null()).drop("_reason")
        if bad.height
        else (typed.drop("_reason"))
    )
    return Normalised(good, bad)


def _column(stream: StreamDef, given: dict[str, str], wanted: str) -> str:
    found = given.get(wanted.lower())
    if found is None:
        raise IngestError(
            f"{stream.name}: the batch has no column {wanted}; it has {', '.join(given.values())}"
        )
    return found


_SQL_TYPES: dict[type[pl.DataType], SqlType] = {
    pl.Boolean: BOOLEAN,
    pl.Float64: DOUBLE,
    pl.Float32: DOUBLE,
    pl.String: VARCHAR,
    pl.Date: DATE,
    pl.Datetime: TIMESTAMP,
}


def _sql_type(given: pl.DataType) -> SqlType | None:
    if given.is_integer():
        return BIGINT
    if isinstance(given, pl.Decimal):
        return decimal(given.scale)
    return _SQL_TYPES.get(type(given))


def _typed(x: pl.Expr, given: pl.DataType, wanted: SqlType) -> pl.Expr:
    """The column in the wanted type; NULL where it does not fit."""
    target = dtype(wanted)
    nothing = pl.lit(None, dtype=target)
    source = _sql_type(given)
    if isinstance(given, pl.Null) or source is None:
        return nothing
    if isinstance(given, pl.Datetime):
        x = (
            x.dt.replace_time_zone(None)
            if given.time_zone is None
            else (x.dt.convert_time_zone("UTC").dt.replace_time_zone(None))
        )
        x = x.dt.cast_time_unit("us")
    if wanted.kind is Kind.DOUBLE and source.is_numeric:
        value = x.cast(pl.Float64, strict=False)
        return pl.when(value.is_finite()).then(value + 0.0)
    if given == target:
        return x
    if source.kind is Kind.VARCHAR or (source.is_integer and wanted.is_numeric):
        return cast(x.cast(dtype(source), strict=False), source, wanted)
    if source.is_temporal and wanted.is_temporal:
        return x.cast(target)
    if source.is_numeric and wanted.is_numeric:
        # A number with a fraction is no whole number: refused, not rounded.
        value = cast(x.cast(dtype(source)), source, wanted)
        return pl.when(value.cast(pl.Float64) == x.cast(pl.Float64)).then(value)
    return nothing


def _mismatch(source: str, value: pl.Expr, wanted: SqlType) -> pl.Expr:
    text = pl.col(source).cast(pl.String, strict=False).fill_null("?")
    reason = pl.format(f"{source.replace('{', '{{')}: '{{}}' is not a valid {wanted}", text)
    return pl.when(pl.col(source).is_not_null() & value.is_null()).then(reason)


def _instant(stamp: pl.Expr, stream: StreamDef) -> pl.Expr:
    if stream.timestamp_type.is_integer:
        return stamp.cast(pl.Int64)
    return stamp.cast(pl.Datetime("us")).cast(pl.Int64) // stream.resolution_us
