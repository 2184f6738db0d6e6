"""Into the engine: typed tuples with instants, poison told apart, late ones kept aside.

A batch of one partition of one stream is normalised, judged and landed as a file, in order; when
`Landing.push` returns, it is durable. Lateness is judged tuple by tuple against the partition's own
running maximum, so neither batches nor ticks can be seen in it.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import polars as pl

from thalweg.engine.shared.expressions.casts import cast
from thalweg.engine.shared.frames import FOREVER, POS, TS, W, dtype, name
from thalweg.engine.shared.ingest.batch_ids import Taken, is_known, remember
from thalweg.engine.shared.state.segments import write_frame
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.task import BEGINNING
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

PARTITION_BITS = 44  # a position is the partition's number, then its own count

FURTHEST = 1 << 61  # instants, from zero: with a window's length added they stay 64-bit numbers

# Columns by which a source refuses a row itself: its reason, and the row as it came (text).
REFUSED, RAW = "_refused", "_raw"


class IngestError(ValueError):
    """A batch that can't be taken as a whole: nothing of it was kept."""


@dataclass(frozen=True)
class Receipt:
    """What became of a batch."""

    accepted: int
    late: int
    rejected: int
    repeated: bool = False
    reason: str | None = None  # why the first rejected row was


@dataclass(frozen=True)
class Normalised:
    """Well-typed rows (`c…`, `_ts`, `_row`, for relations `_w`), and why others are not."""

    rows: pl.DataFrame
    rejected: pl.DataFrame  # `_row`, `_reason`


def normalise(stream: StreamDef, batch: pl.DataFrame) -> Normalised:
    """Bring a batch to the stream's types; every row passes or has a reason."""
    given = {c.lower(): c for c in batch.columns}
    frame = batch.with_row_index("_row").with_columns(pl.col("_row").cast(pl.Int64))
    reasons: list[pl.Expr] = [pl.col(REFUSED)] if REFUSED in batch.columns else []
    columns: list[pl.Expr] = [pl.col("_row")]
    for i, f in enumerate(stream.fields):
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
    bad = typed.filter(pl.col("_reason").is_not_null()).select("_row", "_reason")
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
    reason = pl.format(f"{source.replace('{', '{{')}: {{}} is no {wanted}", text)
    return pl.when(pl.col(source).is_not_null() & value.is_null()).then(reason)


def _instant(stamp: pl.Expr, stream: StreamDef) -> pl.Expr:
    if stream.timestamp_type.is_integer:
        return stamp.cast(pl.Int64)
    return stamp.cast(pl.Datetime("us")).cast(pl.Int64) // stream.resolution_us


def newest_before(rows: pl.DataFrame, newest: int) -> pl.Series:
    """For each row the newest timestamp before it in its partition."""
    return rows[TS].cum_max().shift(1, fill_value=BEGINNING).clip(lower_bound=newest)


class Landing:
    """Where batches arrive; one for a data directory."""

    def __init__(self, store: Store, *, durable: bool = True) -> None:
        self.store = store
        self.durable = durable
        self._turns: dict[str, threading.Lock] = {}
        self.folder = store.folder / "landed"
        self.folder.mkdir(exist_ok=True)

    def push(
        self,
        stream: StreamDef,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        positions: list[int] | None = None,
        resume: bytes | None = None,
    ) -> Receipt:
        """Take a batch; a repeated batch id counts once. Durable when it returns.

        `resume` is kept with it: where the source goes on after a restart (`resume_point`).
        Batches of one stream take turns, since lateness and positions follow from their order.
        """
        with self._turn(stream):
            return self._push(stream, batch, partition, batch_id, positions, resume)

    def _turn(self, stream: StreamDef) -> threading.Lock:
        return self._turns.setdefault(stream.name, threading.Lock())

    def _push(
        self,
        stream: StreamDef,
        batch: pl.DataFrame,
        partition: int,
        batch_id: str | None,
        positions: list[int] | None,
        resume: bytes | None,
    ) -> Receipt:
        if batch_id is not None and is_known(self.store, stream.name, batch_id):
            return Receipt(0, 0, 0, repeated=True)
        normalised = normalise(stream, batch)
        newest, position = self._partition(stream, partition)
        rows = normalised.rows
        if positions is None:
            places = (partition << PARTITION_BITS) + position + pl.col("_row")
            rows = rows.with_columns(places.alias(POS))
        else:
            rows = rows.with_columns(pl.Series(POS, positions, dtype=pl.Int64).gather(rows["_row"]))
        watermark = newest_before(rows, newest) - stream.lateness
        is_late = rows[TS] < watermark.clip(lower_bound=self._late_below(stream))
        accepted = rows.filter(~is_late).drop("_row")
        late = rows.filter(is_late)
        own = int(rows[TS].max()) if rows.height else BEGINNING  # type: ignore[arg-type]
        latest = max(newest, own)
        with self.store.transaction() as db:
            landed = self._land(stream, partition, accepted, latest, position + batch.height)
            if batch_id is not None:
                taken = Taken(batch_id, stream.name, partition, own)
                remember(db, taken, landed, latest - stream.lateness)
            self._set_aside(stream, batch, late, normalised.rejected)
            if resume is not None:
                self.store.write_progress(f"source/{stream.name}/{partition}", resume)
        rejected = normalised.rejected
        reason = rejected["_reason"][0] if rejected.height else None
        return Receipt(accepted.height, late.height, rejected.height, reason=reason)

    def resume_point(self, stream: StreamDef, partition: int = 0) -> bytes | None:
        """What the last batch of the partition said about going on."""
        return self.store.progress(f"source/{stream.name}/{partition}")

    def backlog(self) -> int:
        """Tuples that have landed and wait for a tick."""
        return int(self.store.all("SELECT coalesce(sum(rows), 0) FROM landed")[0][0])

    def heartbeat(self, stream: StreamDef, instant: int, *, partition: int = 0) -> None:
        """A promise that no tuple below the instant will come."""
        with self._turn(stream):
            newest, position = self._partition(stream, partition)
            promised = max(newest, instant + stream.lateness)
            self._land(stream, partition, None, promised, position)

    def finish(self, stream: StreamDef) -> None:
        """The source has ended: the watermark is infinite."""
        known = self.store.all(
            "SELECT partition, position FROM partitions WHERE stream = ?", stream.name
        )
        for partition, position in known or [(0, 0)]:
            self._land(stream, partition, None, FOREVER, position)

    def declare(self, stream: StreamDef, partitions: list[int]) -> None:
        """Make partitions known before they say anything: they hold the watermark back."""
        with self.store.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO partitions VALUES (?, ?, ?, ?, 0)",
                [(stream.name, p, BEGINNING, BEGINNING) for p in partitions],
            )

    # --- inside

    def _partition(self, stream: StreamDef, partition: int) -> tuple[int, int]:
        """The partition's newest timestamp so far, and its next position."""
        sql = "SELECT newest, position FROM partitions WHERE stream = ? AND partition = ?"
        rows = self.store.all(sql, stream.name, partition)
        return rows[0] if rows else (BEGINNING, 0)  # type: ignore[return-value]

    def _late_below(self, stream: StreamDef) -> int:
        rows = self.store.all("SELECT late_below FROM floors WHERE stream = ?", stream.name)
        return rows[0][0] if rows else BEGINNING

    def _land(
        self,
        stream: StreamDef,
        partition: int,
        rows: pl.DataFrame | None,
        newest: int,
        position: int,
    ) -> int:
        """Gives the number under which it is listed; numbers grow."""
        file = None
        if rows is not None and rows.height:
            file = f"landed/{file_name(stream.name)}-{partition}-{position}.arrow"
            write_frame(self.store.folder / file, rows, durable=self.durable)
        with self.store.transaction() as db:
            db.execute(
                "INSERT INTO partitions VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream, partition) "
                "DO UPDATE SET newest = excluded.newest, position = excluded.position",
                (stream.name, partition, newest, BEGINNING, position),
            )
            listed = db.execute(
                "INSERT INTO landed (stream, file, rows, partition, newest) VALUES (?, ?, ?, ?, ?)",
                (stream.name, file, 0 if rows is None else rows.height, partition, newest),
            )
            return int(listed.lastrowid or 0)

    def _set_aside(
        self, stream: StreamDef, batch: pl.DataFrame, late: pl.DataFrame, bad: pl.DataFrame
    ) -> None:
        """Late and poisoned tuples go to files of their own, as they came."""
        self.store.count(f"late/{stream.name}", late.height)
        self.store.count(f"rejected/{stream.name}", bad.height)
        if late.height:
            lines = [_line(batch, row, None) for row in late["_row"]]
            append_lines(self.store, late_file(stream.name), lines)
        if bad.height:
            lines = [_line(batch, row, reason) for row, reason in bad.iter_rows()]
            append_lines(self.store, rejects_file(stream.name), lines)


def _line(batch: pl.DataFrame, row: int, reason: str | None) -> str:
    values = batch.row(row, named=True)
    values.pop(REFUSED, None)
    raw = values.pop(RAW, None)
    entry: dict[str, Any] = {"row": values if raw is None else raw}
    if reason is not None:
        entry["reason"] = reason
    return json.dumps(entry, default=str)


def file_name(stream: str) -> str:
    """A stream's name as part of a file's: a quoted name may hold anything, also a slash."""
    return quote(stream, safe=" ")


def late_file(stream: str) -> str:
    return f"late/{file_name(stream)}.jsonl"


def rejects_file(stream: str) -> str:
    return f"rejects/{file_name(stream)}.jsonl"


def append_lines(store: Store, file: str, lines: list[str]) -> None:
    """Append to a file whose committed length is in the book; what a crash left behind is cut."""
    path = store.folder / file
    path.parent.mkdir(exist_ok=True)
    length = int(store.progress(file) or b"0")
    with path.open("ab") as out:
        out.truncate(length)
        out.seek(length)
        out.write("".join(line + "\n" for line in lines).encode())
        out.flush()
        os.fsync(out.fileno())
        length = out.tell()
    store.write_progress(file, str(length).encode())
