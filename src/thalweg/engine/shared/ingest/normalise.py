"""Typed tuples with instants from whatever a batch holds; every row passes or has a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from thalweg.engine.shared.frames import TS, W, name
from thalweg.engine.shared.ingest.values import fitted, python_value, shown
from thalweg.plan.catalog import StreamDef
from thalweg.plan.types import BIGINT, VARCHAR, SqlType

FURTHEST = 1 << 61  # instants, from zero: with a window's length added they stay 64-bit numbers
ROW = "_row"  # a tuple's place in its batch

# Columns by which a source refuses a row itself: its reason, and the row as it came (text).
REFUSED, RAW = "_refused", "_raw"
_BAD = "_bad"
_DATE = re.compile(r"\s*\d{4}-\d\d-\d\d")
_REJECTED = {ROW: pl.Int64(), "_reason": pl.String()}
_NONE_REJECTED = pl.DataFrame(schema=_REJECTED)


class IngestError(ValueError):
    """A batch that can't be taken as a whole: nothing of it was kept."""


@dataclass(frozen=True)
class Normalised:
    """Well-typed rows (`c…`, `_ts`, `_row`, for relations `_w`), and why others are not."""

    rows: pl.DataFrame
    rejected: pl.DataFrame  # `_row`, `_reason`


def normalise(stream: StreamDef, batch: pl.DataFrame) -> Normalised:
    """Bring a batch to the stream's types; every row passes or has a reason."""
    given: dict[str, str] = {}
    for column in batch.columns:
        given.setdefault(column.lower(), column)
    for f in stream.fields:  # producers need not know of a column that was added
        if f.name.lower() in stream.added_names and f.name.lower() not in given:
            batch = batch.with_columns(pl.lit(None).alias(f.name))
            given[f.name.lower()] = f.name
    wanted = [(_column(stream, given, f.name), f.type) for f in stream.fields]
    wanted.append((_column(stream, given, stream.timestamp), stream.timestamp_type))
    values = [fitted(pl.col(c), batch.schema[c], sql) for c, sql in wanted]
    columns = [value.alias(name(i)) for i, value in enumerate(values[:-1])]
    if stream.is_relation:
        columns.append(_op(_column(stream, given, "op"), batch).alias(W))
    columns.append(_instant(values[-1], stream).alias(TS))
    # The place counts the rows: all other columns may be constants.
    typed = batch.select(pl.int_range(pl.len(), dtype=pl.Int64).alias(ROW), *columns)
    if _is_clean(stream, batch, wanted, typed):
        return Normalised(typed, _NONE_REJECTED)
    is_bad = _bad_rows(stream, batch, wanted, typed)
    if not is_bad.any():
        return Normalised(typed, _NONE_REJECTED)
    rest, came = typed.filter(is_bad), batch.filter(is_bad)
    reasons = [_reason(came, wanted, rest, i) for i in range(rest.height)]
    rejected = pl.DataFrame({ROW: rest[ROW], "_reason": reasons}, schema=_REJECTED)
    return Normalised(typed.filter(~is_bad), rejected)


def _is_clean(
    stream: StreamDef,
    batch: pl.DataFrame,
    wanted: Sequence[tuple[str, SqlType]],
    typed: pl.DataFrame,
) -> bool:
    """Whether no row is bad, as the columns' own counts and bounds tell: most batches are small and
    clean, and looking at each row costs them more than all else."""
    stamps = typed[TS]
    if not typed.height or stamps.null_count() or (stream.is_relation and typed[W].null_count()):
        return False
    if REFUSED in batch.columns and batch[REFUSED].null_count() < batch.height:
        return False
    low, high = stamps.min(), stamps.max()
    if not -FURTHEST <= low <= high <= FURTHEST:  # type: ignore[operator]
        return False
    return all(
        typed[name(i)].null_count() == batch[column].null_count()
        for i, (column, _) in enumerate(wanted[:-1])
    )


def _bad_rows(
    stream: StreamDef,
    batch: pl.DataFrame,
    wanted: Sequence[tuple[str, SqlType]],
    typed: pl.DataFrame,
) -> pl.Series:
    """Those of which a value was there and does not fit, or whose instant is none."""
    is_bad = ~typed[TS].is_between(-FURTHEST, FURTHEST).fill_null(False)
    for i, (column, _) in enumerate(wanted[: len(stream.fields)]):
        if typed[name(i)].null_count() != batch[column].null_count():
            is_bad |= typed[name(i)].is_null() & batch[column].is_not_null()
    if stream.is_relation:
        is_bad |= typed[W].is_null()
    if REFUSED in batch.columns:
        is_bad |= batch[REFUSED].is_not_null()
    return is_bad


def _column(stream: StreamDef, given: dict[str, str], wanted: str) -> str:
    found = given.get(wanted.lower())
    if found is None:
        raise IngestError(
            f"{stream.name}: the batch has no column {wanted}; it has {', '.join(given.values())}"
        )
    return found


def _instant(stamp: pl.Expr, stream: StreamDef) -> pl.Expr:
    if stream.timestamp_type.is_integer:
        return stamp.cast(pl.Int64)
    return stamp.cast(pl.Datetime("us")).cast(pl.Int64) // stream.resolution_us


def _op(column: str, batch: pl.DataFrame) -> pl.Expr:
    """+1 or -1; NULL for anything else."""
    text = fitted(pl.col(column), batch.schema[column], VARCHAR)
    return pl.when(text == "+").then(1).when(text == "-").then(-1).cast(pl.Int64)


def _reason(
    came: pl.DataFrame, wanted: Sequence[tuple[str, SqlType]], typed: pl.DataFrame, row: int
) -> str:
    """Why a row is rejected: its source's own reason, else the first value at fault."""
    if REFUSED in came.columns and (said := came[REFUSED][row]) is not None:
        return str(said)
    kept = [*(name(i) for i in range(len(wanted) - 1)), TS]
    for (column, sql), value in zip(wanted, kept, strict=True):
        if typed[value][row] is None and not came[column].slice(row, 1).null_count():
            why = f"{column}: {shown(came[column], row)} is not a valid {sql}"
            is_instant = column == wanted[-1][0] and sql == BIGINT
            if is_instant and _DATE.match(str(python_value(came[column].slice(row, 1)))):
                why += f": for dates and times, list {column} TIMESTAMP among the columns"
            return why
    stamp, instant = wanted[-1][0], typed[TS][row]
    if instant is None:
        return f"{stamp}: the timestamp is missing"
    if not -FURTHEST <= instant <= FURTHEST:
        return f"{stamp}: the timestamp is out of range"
    return "op: neither + nor -"
