"""A tick's rows as Kafka records: changes, or upserts by a key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import OP, TS, name
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.encode import json_lines, json_rows, mark_line
from thalweg.plan.catalog import QueryDef
from thalweg.plan.uniqueness import tells_rows_apart

KEY, VALUE, INSTANT, ORDINAL = "key", "value", "instant", "ordinal"
CHANGES, UPSERTS = "changes", "upserts"
FORMS = (CHANGES, UPSERTS)
SCHEMA = {KEY: pl.String, VALUE: pl.String, INSTANT: pl.Int64, ORDINAL: pl.Int64}
RECORDS = f"{KEY} string, {VALUE} string, {INSTANT} long, {ORDINAL} long"  # as Spark writes it
_BATCH = 10_000


def records(emission: Emission, keys: tuple[str, ...], form: str) -> pl.DataFrame:
    """A record for each row: its key and value as JSON, and its instant and ordinal.

    Upserts: the row itself, or nothing (a tombstone) where a key's row has gone and no other has
    come at the same instant.
    """
    rows = emission.rows
    if not rows.height:
        return pl.DataFrame(schema=SCHEMA)
    key = pl.lit(None, dtype=pl.String)
    if keys:
        places = [_place(emission.query, emission.columns, k) for k in keys]
        picked = rows.select(*(pl.col(name(p)).alias(name(i)) for i, p in enumerate(places)))
        key = pl.lit(picked.select(json_rows(picked, keys).alias(KEY))[KEY])
    value = json_lines(emission).str.strip_suffix("\n")
    if form == UPSERTS:
        value = rows.select(json_rows(rows, emission.columns).alias(VALUE))[VALUE]
    found = rows.select(
        key.alias(KEY),
        pl.lit(value).alias(VALUE),
        pl.col(TS).alias(INSTANT),
        pl.Series(ORDINAL, emission.ordinals(), dtype=pl.Int64),
        OP,
    )
    return (_upserts(emission, found) if form == UPSERTS else found).drop(OP)


def _upserts(emission: Emission, found: pl.DataFrame) -> pl.DataFrame:
    comes = found.filter(pl.col(OP) > 0)
    twice = comes.filter(pl.struct(INSTANT, KEY).is_duplicated())
    if twice.height:
        raise SinkError(
            f"{emission.query} has two rows of key {twice[KEY][0]} at instant {twice[INSTANT][0]}: "
            "upserts need a key that tells all rows apart"
        )
    goes = found.filter(pl.col(OP) < 0).join(comes, on=[INSTANT, KEY], how="anti")
    goes = goes.unique([INSTANT, KEY], keep="first", maintain_order=True)
    gone = goes.with_columns(pl.lit(None, dtype=pl.String).alias(VALUE))
    return pl.concat([comes, gone]).sort(INSTANT, ORDINAL)


def check_key(query: QueryDef, keys: tuple[str, ...], form: str) -> None:
    """Raises SinkError unless the query has these columns and, for upserts, never two rows of one
    key: what goes would take the other one's key with it."""
    if not keys:
        return
    plan, columns = query.plan, [f.name for f in query.plan.schema]
    places = frozenset(_place(query.name, columns, key) for key in keys)
    if form == UPSERTS and not plan.is_stream and not tells_rows_apart(plan, places):
        key = ", ".join(keys)
        raise SinkError(
            f"upserts need a key of which {query.name} has one row at most, and that is not "
            f"certain of {key}: GROUP BY {key}, read [Partition By {key} Rows 1], or send changes"
        )


def mark_record(emission: Emission) -> pl.DataFrame:
    """The end mark of a version, behind its rows; it has no key."""
    assert emission.mark is not None
    value = mark_line(emission).rstrip("\n")
    row = (None, value, emission.mark.instant, emission.rows.height)
    return pl.DataFrame([row], SCHEMA, orient="row")


def _place(query: str, columns: Sequence[str], wanted: str) -> int:
    names = [c.lower() for c in columns]
    if wanted.lower() not in names:
        near = difflib.get_close_matches(wanted.lower(), names, n=1)
        hint = f"; did you mean {columns[names.index(near[0])]}?" if near else ""
        raise SinkError(
            f"{query} has no column {wanted} to be the key: it has {', '.join(columns)}{hint}"
        )
    return names.index(wanted.lower())


# --- in tasks


def write_records(
    emission: Emission, path: Path, *, keys: tuple[str, ...], form: str, there: pl.DataFrame
) -> None:
    """A part of what is much, without what is there already."""
    rows = records(emission, keys, form)
    rows = rows.join(there, on=[INSTANT, ORDINAL], how="anti", maintain_order="left")
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(_ARROW)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _ARROW) as writer:
        writer.write_table(table, max_chunksize=_BATCH)


@dataclass(frozen=True)
class ReadRecords:
    """Names of files in, their records out, in order."""

    folder: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name_ in batch["name"].to_pylist():
                with pa.memory_map(str(self.folder.get(name_))) as mapped:
                    reader = pa.ipc.open_file(mapped)
                    for i in range(reader.num_record_batches):
                        yield reader.get_batch(i)


_ARROW = pa.schema(
    [(KEY, pa.string()), (VALUE, pa.string()), (INSTANT, pa.int64()), (ORDINAL, pa.int64())]
)


def refusal(error: BaseException) -> SinkError | None:
    """What a task has refused, as Spark tells it among much else."""
    found = re.search(r"SinkError: (.*)", str(error))
    return None if found is None else SinkError(found[1])
