"""CREATE TABLE, and rows that are written to tables and streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.expressions import ExpressionBinder
from thalweg.cql.bind.literals import align
from thalweg.cql.bind.scope import Scope, Source
from thalweg.cql.bind.streams import OPERATION_COLUMN, milliseconds, options_of, resolution_us
from thalweg.cql.errors import Mistake, did_you_mean
from thalweg.plan.catalog import Catalog, Field, StreamDef
from thalweg.plan.expr import Col, Expr, Lit, Value
from thalweg.plan.functions import TypeMismatch, cast
from thalweg.plan.types import BIGINT, BOOLEAN, DATE, NULL, TIMESTAMP, SqlType


@dataclass(frozen=True, slots=True)
class Write:
    """Rows that a statement puts into a stream or table (by column), or takes out of a table."""

    stream: StreamDef
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    gone: Expr | None = None


def bind_table(statement: syntax.CreateTable) -> StreamDef:
    names: dict[str, syntax.Name] = {}
    for column in statement.columns:
        key = column.name.text.lower()
        if key in names:
            raise Mistake(f'two columns are named "{column.name.text}"', column.name.span)
        if key == OPERATION_COLUMN:
            hint = "rename it; a RELATION takes a changelog in which op says + or -"
            raise Mistake("a table's column can't be called op", column.name.span, hint)
        names[key] = column.name
    if not names:
        hint = "CREATE TABLE name (column type, …)"
        raise Mistake("a table needs columns", statement.name.span, hint)
    _check_key(statement.key, names)
    if statement.refresh is not None and statement.source is None:
        hint = "say FROM 'file.csv' as well"
        raise Mistake("REFRESH needs a file", statement.refresh.span, hint)
    stamp = "instant"
    while stamp in names:
        stamp += "_"
    return StreamDef(
        name=statement.name.text,
        fields=tuple(Field(c.name.text, c.type) for c in statement.columns),
        timestamp=stamp,
        timestamp_type=BIGINT,
        is_relation=True,
        resolution_us=resolution_us(statement.resolution),
        source=statement.source,
        options=options_of(statement.options),
        is_table=True,
        key=tuple(names[k.text.lower()].text for k in statement.key),
        refresh_ms=milliseconds(statement.refresh, "REFRESH"),
    )


def _check_key(key: tuple[syntax.Name, ...], names: dict[str, syntax.Name]) -> None:
    seen: set[str] = set()
    for name in key:
        if name.text.lower() not in names:
            hint = did_you_mean(name.text, (n.text for n in names.values()))
            raise Mistake(f'there is no column "{name.text}" for the key', name.span, hint)
        if name.text.lower() in seen:
            raise Mistake(f'"{name.text}" is in the key twice', name.span)
        seen.add(name.text.lower())


# --- INSERT and DELETE --------------------------------------------------------------------------


def bind_write(statement: syntax.Writing, catalog: Catalog, text: str) -> Write:
    stream = _target(statement, catalog)
    if isinstance(statement, syntax.Insert):
        return _insert(statement, stream, text)
    if statement.where is None:
        return Write(stream, gone=Lit(True, BOOLEAN))
    source = Source(stream.name, stream.fields, statement.name.span, 0, stream.name)
    binder = ExpressionBinder(Scope((source,)), Context(catalog, text), "WHERE")
    return Write(stream, gone=binder.condition(statement.where, "WHERE"))


def _target(statement: syntax.Writing, catalog: Catalog) -> StreamDef:
    name = statement.name
    verb = "INSERT INTO" if isinstance(statement, syntax.Insert) else "DELETE FROM"
    found = catalog.find(name.text)
    if found is None:
        hint = did_you_mean(name.text, (s.name for s in catalog.streams()))
        message = f'there is no stream or table "{name.text}"'
        raise Mistake(message, name.span, hint, unknown=name.text)
    if not isinstance(found, StreamDef):
        raise Mistake(f'{verb} takes a stream or table, and "{found.name}" is none', name.span)
    if found.is_relation and not found.is_table:
        hint = "push its changes with op + and -, or define it with CREATE TABLE"
        raise Mistake(f"{verb} does not take a relation", name.span, hint)
    if isinstance(statement, syntax.Delete) and not found.is_table:
        raise Mistake("a stream's tuples can't be taken back", name.span, "DELETE FROM a table")
    if found.source is not None and not found.source.lower().startswith("push:"):
        hint = "change the file, or define it without FROM"
        raise Mistake(f"{found.name} is what {found.source} says", name.span, hint)
    return found


def _insert(statement: syntax.Insert, stream: StreamDef, text: str) -> Write:
    types = {f.name.lower(): f for f in stream.fields}
    if not stream.is_table and stream.timestamp_index is None:
        types[stream.timestamp.lower()] = Field(stream.timestamp, stream.timestamp_type)
    wanted = list(types.values())
    if statement.columns:
        wanted = [_column(c, types) for c in statement.columns]
        _check_distinct(statement.columns)
    rows = tuple(_row(row, wanted, statement, text) for row in statement.rows)
    return Write(stream, tuple(f.name for f in wanted), rows)


def _column(name: syntax.Name, types: dict[str, Field]) -> Field:
    found = types.get(name.text.lower())
    if found is None:
        hint = did_you_mean(name.text, (f.name for f in types.values()))
        raise Mistake(f'there is no column "{name.text}"', name.span, hint)
    return found


def _check_distinct(names: Iterable[syntax.Name]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text.lower() in seen:
            raise Mistake(f'column "{name.text}" is given twice', name.span)
        seen.add(name.text.lower())


def _row(
    row: tuple[syntax.Expr, ...], wanted: list[Field], statement: syntax.Insert, text: str
) -> tuple[Value, ...]:
    if len(row) != len(wanted):
        listed = ", ".join(f.name for f in wanted)
        message = f"{len(row)} values for {len(wanted)} columns ({listed})"
        raise Mistake(message, (row[0].span[0], row[-1].span[1]))
    return tuple(_value(e, f, text) for e, f in zip(row, wanted, strict=True))


def _value(expr: syntax.Expr, field: Field, text: str) -> Value:
    """A constant in the column's type."""
    if isinstance(expr, syntax.ColumnRef) and not expr.quoted:
        hint = f"a string is written in single quotes: '{expr.name}'"
        raise Mistake("INSERT takes constants", expr.span, hint)
    binder = ExpressionBinder(Scope(()), Context(Catalog(), text), "VALUES")
    bound = binder.bind(expr)
    if not isinstance(bound, Lit):
        raise Mistake("INSERT takes constants", expr.span)
    # A text beside a DATE or TIMESTAMP is read as one.
    bound, _ = align([bound, Col(0, field.type)], [expr.span, expr.span])
    if not _fits(bound.type, field.type):
        message = f'column "{field.name}" is {field.type}, and this is {bound.type}'
        raise Mistake(message, expr.span)
    try:
        value = cast(bound, field.type)
    except TypeMismatch as mismatch:
        raise Mistake(str(mismatch), expr.span) from None
    is_null = bound == Lit(None, NULL)
    if not isinstance(value, Lit) or (value.value is None and not is_null):
        raise Mistake(f'this does not fit column "{field.name}", {field.type}', expr.span)
    if bound.type.is_numeric and value.value != bound.value:  # type: ignore[union-attr]
        raise Mistake(f'this does not fit column "{field.name}", {field.type}', expr.span)
    return value.value


def _fits(given: SqlType, wanted: SqlType) -> bool:
    both_numbers = given.is_numeric and wanted.is_numeric
    return given in (NULL, wanted) or both_numbers or (given, wanted) == (DATE, TIMESTAMP)
