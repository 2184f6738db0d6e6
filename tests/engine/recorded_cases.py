"""Conformance cases as people would have them: a CQL file, and recorded files of each stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
from tests.conformance.case_files import Case
from tests.conformance.runner import Prepared, prepare

from thalweg.cql import Script, compile_script
from thalweg.cql.syntax import CreateStream
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.shared.frames import dtype
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.expr import Value
from thalweg.plan.types import Kind, SqlType

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Recorded:
    """A case on disk."""

    script: Script
    folder: Path
    prepared: Prepared

    @property
    def has_partitions(self) -> bool:
        return any(a.partition for arrivals in self.prepared.inputs.values() for a in arrivals)


def record_case(case: Case, folder: Path, form: str, rows_per_file: int) -> Recorded:
    prepared = prepare(case)
    streams = {s.name: s for s in prepared.catalog.streams()}
    text = case.text
    statements = compile_script(text).statements
    for statement in reversed(statements):
        if isinstance(statement, CreateStream) and statement.name.text in prepared.inputs:
            name = statement.name.text
            by_file = _write(folder, streams[name], prepared.inputs[name], form, rows_per_file)
            options = f"format '{form}'" + (", partitions 'file'" if by_file else "")
            end = statement.span[1]
            text = f"{text[:end]} FROM '{name}' OPTIONS ({options}){text[end:]}"
    (folder / "case.cql").write_text(text)
    return Recorded(compile_script(text), folder, prepared)


def _write(
    folder: Path, stream: StreamDef, arrivals: Sequence[Arrival], form: str, rows_per_file: int
) -> bool:
    """Files of a stream; whether each is a partition."""
    there = folder / stream.name
    there.mkdir()
    partitions = sorted({a.partition for a in arrivals})
    by_file = partitions not in ([], [0])
    if by_file:
        runs = [[a for a in arrivals if a.partition == p] for p in range(max(partitions) + 1)]
    else:
        cuts = [*range(0, len(arrivals), rows_per_file), len(arrivals)]
        runs = [list(arrivals[i:j]) for i, j in pairwise(cuts)] or [[]]
    for number, run in enumerate(runs):
        _FORMS[form](there / f"part-{number}.{form}", stream, run)
    return by_file


def _values(stream: StreamDef, arrival: Arrival) -> dict[str, Value]:
    values = {f.name: v for f, v in zip(stream.fields, arrival.row, strict=True)}
    if stream.timestamp_index is None:
        values[stream.timestamp] = _stamp(stream, arrival.timestamp)
    if stream.is_relation:
        values["op"] = arrival.op
    return values


def _stamp(stream: StreamDef, instant: int) -> Value:
    if stream.timestamp_type.is_integer:
        return instant
    moment = _EPOCH + timedelta(microseconds=instant * stream.resolution_us)
    return moment.date() if stream.timestamp_type.kind is Kind.DATE else moment


def _write_csv(path: Path, stream: StreamDef, arrivals: Sequence[Arrival]) -> None:
    rows = (_values(stream, arrival).values() for arrival in arrivals)
    lines = [",".join(columns_of(stream)), *(",".join(map(_csv, row)) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines))


def _csv(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return str(value)


def _write_json(path: Path, stream: StreamDef, arrivals: Sequence[Arrival]) -> None:
    def text(value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    rows = [{k: text(v) for k, v in _values(stream, a).items()} for a in arrivals]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_parquet(path: Path, stream: StreamDef, arrivals: Sequence[Arrival]) -> None:
    schema = {name: dtype(sql) for name, sql in columns_of(stream).items()}
    pl.DataFrame([_values(stream, a) for a in arrivals], schema=schema).write_parquet(path)


_FORMS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}


# --- reading what was printed


def printed(lines: bytes, queries: Sequence[QueryDef]) -> dict[str, list[Change]]:
    by_name = {q.name: q for q in queries}
    found: dict[str, list[Change]] = {q.name: [] for q in queries}
    for entry in entries(lines):
        schema = by_name[entry["query"]].plan.schema
        row = tuple(_read(entry["row"][f.name], f.type) for f in schema)
        assert len(entry["row"]) == len(schema)
        found[entry["query"]].append(Change(entry["ts"], entry["op"], row))
    return found


def entries(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.decode().splitlines():
        yield json.loads(line, parse_float=Decimal)


def _read(value: Any, sql: SqlType) -> Value:
    match sql.kind:
        case _ if value is None:
            return None
        case Kind.DOUBLE:
            return float(value)
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(value)
        case _:
            return value
