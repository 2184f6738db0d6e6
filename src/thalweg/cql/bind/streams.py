"""CREATE STREAM and CREATE RELATION."""

from __future__ import annotations

from dataclasses import replace

from thalweg.cql.bind.windows import instants
from thalweg.cql.errors import Mistake
from thalweg.cql.syntax import ColumnDef, CreateStream, Duration, Name
from thalweg.cql.units import microseconds
from thalweg.plan.catalog import MICROSECONDS_PER_MILLISECOND, Field, StreamDef
from thalweg.plan.types import BIGINT, DATE, INTEGER, TIMESTAMP, SqlType

OPERATION_COLUMN = "op"


def with_column(stream: StreamDef, column: ColumnDef) -> StreamDef:
    """With one more column, behind the others; older tuples have NULL in it."""
    key = column.name.text.lower()
    if key in (f.name.lower() for f in stream.fields) or key == stream.timestamp.lower():
        raise Mistake(f'{stream.name} already has a column "{column.name.text}"', column.name.span)
    if stream.is_relation:
        _check_not_op(column)
    fields = (*stream.fields, Field(column.name.text, column.type))
    return replace(stream, fields=fields, added=stream.added + 1)


def _check_not_op(column: ColumnDef) -> None:
    if column.name.text.lower() == OPERATION_COLUMN:
        hint = "leave it out: it says + or - and is never part of the row"
        raise Mistake("op is the changelog's own column", column.name.span, hint)


def bind_stream(statement: CreateStream) -> StreamDef:
    seen: set[str] = set()
    for column in statement.columns:
        key = column.name.text.lower()
        if key in seen:
            raise Mistake(f'two columns are named "{column.name.text}"', column.name.span)
        if statement.is_relation:
            _check_not_op(column)
        if statement.is_relation and column.wide is not None:
            raise Mistake("a relation is kept whole", column.wide, "leave WIDE out")
        seen.add(key)
    resolution = resolution_us(statement.resolution)
    timestamp_type = _timestamp_type(statement)
    return StreamDef(
        name=statement.name.text,
        fields=tuple(Field(c.name.text, c.type) for c in statement.columns),
        timestamp=statement.timestamp.text,
        timestamp_type=timestamp_type,
        is_relation=statement.is_relation,
        resolution_us=resolution,
        lateness=_lateness(statement.lateness, resolution, timestamp_type.is_integer),
        idle_ms=milliseconds(statement.idle, "IDLE"),
        source=statement.source,
        retain=_retain(statement, resolution, timestamp_type.is_integer),
        wide=tuple(i for i, c in enumerate(statement.columns) if c.wide is not None),
        options=options_of(statement.options),
    )


def options_of(given: tuple[tuple[Name, str], ...]) -> tuple[tuple[str, str], ...]:
    options: dict[str, str] = {}
    for option, value in given:
        if option.text.lower() in options:
            raise Mistake(f'option "{option.text}" is given twice', option.span)
        options[option.text.lower()] = value
    return tuple(options.items())


def _timestamp_type(statement: CreateStream) -> SqlType:
    """The listed column's type, or what TIMESTAMP BY says; BIGINT if neither does."""
    name = statement.timestamp
    explicit = statement.timestamp_type
    listed = {c.name.text.lower(): c.type for c in statement.columns}.get(name.text.lower())
    if listed is not None and explicit is not None and explicit != listed:
        raise Mistake(f"{name.text} is {listed} in the column list", name.span)
    found = listed or explicit or BIGINT
    if found not in (BIGINT, INTEGER, DATE, TIMESTAMP):
        hint = "a timestamp is INTEGER, BIGINT, DATE or TIMESTAMP"
        raise Mistake(f"{name.text} is {found}, which can't stamp tuples", name.span, hint)
    return found


def resolution_us(duration: Duration | None) -> int:
    if duration is None:
        return MICROSECONDS_PER_MILLISECOND
    if duration.unit is None:
        raise Mistake("RESOLUTION needs a unit of time", duration.span, "RESOLUTION 1 SECOND")
    length = microseconds(duration)
    if length < 1:
        raise Mistake("RESOLUTION is a positive length of time", duration.span)
    return length


def _lateness(duration: Duration | None, resolution_us: int, is_counted: bool) -> int:
    if duration is None:
        return 0
    length = instants(duration, resolution_us, is_counted)
    if length < 0:
        raise Mistake("LATENESS can't be negative", duration.span)
    return length


def _retain(statement: CreateStream, resolution_us: int, is_counted: bool) -> int | None:
    duration = statement.retain
    if duration is None:
        return None
    if statement.is_relation:
        raise Mistake("a relation is kept whole", duration.span, "leave RETAIN out")
    length = instants(duration, resolution_us, is_counted)
    if length < 0:
        raise Mistake("RETAIN can't be negative", duration.span)
    return length


def milliseconds(duration: Duration | None, what: str) -> int | None:
    """A length of wall time."""
    if duration is None:
        return None
    if duration.unit is None:
        raise Mistake(f"{what} needs a unit of time", duration.span, f"{what} 30 SECONDS")
    length, rest = divmod(microseconds(duration), MICROSECONDS_PER_MILLISECOND)
    if length < 1 or rest:
        raise Mistake(f"{what} is a positive number of milliseconds", duration.span)
    return length
