"""Statements: what each one adds to or takes from the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.dependencies import dependents
from thalweg.cql.bind.queries import Bound, bind_typed, renamed
from thalweg.cql.bind.streams import bind_stream, options_of, with_column
from thalweg.cql.bind.tables import bind_table
from thalweg.cql.errors import Diagnostic, Mistake, did_you_mean
from thalweg.cql.parser import parse_at
from thalweg.cql.syntax import Mode
from thalweg.plan.catalog import (
    Catalog,
    Definition,
    QueryDef,
    SetAside,
    SinkDef,
    StreamDef,
    ViewDef,
)
from thalweg.plan.nodes import Node
from thalweg.plan.size import size_of
from thalweg.plan.types import INTERVAL


@dataclass(frozen=True, slots=True)
class Change:
    """A definition that was created, replaced (perhaps by itself) or dropped.

    `text` makes it anew: a CREATE, whatever statement it came from. For a column that was added it
    is the ALTER itself.
    """

    definition: Definition
    dropped: bool = False
    warnings: tuple[Diagnostic, ...] = ()
    replaced: Definition | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """A statement that finds what it wants: IF NOT EXISTS, IF EXISTS, the same query again."""

    note: str
    there: Definition | None = None


def changes_of(
    statement: syntax.Statement, catalog: Catalog, text: str, default_name: str
) -> tuple[Change, ...] | Nothing:
    """Raises Mistake. `default_name` is for a bare query."""
    try:
        return _changes_of(statement, catalog, text, default_name)
    except RecursionError:
        # Operators nested to the left can still be too many for Python's stack.
        start = statement.span[0]
        raise Mistake("this statement is nested too deeply", (start, start + 1)) from None


def _changes_of(
    statement: syntax.Statement, catalog: Catalog, text: str, default_name: str
) -> tuple[Change, ...] | Nothing:
    match statement:
        case syntax.Drop():
            return _drop(statement, catalog)
        case syntax.AddColumn():
            return (_add_column(statement, catalog, text),)
        case syntax.SpreadQuery():
            hint = "send it to a node of a network, without other statements"
            raise Mistake("a script can't say where a query runs", statement.span, hint)
        case syntax.Insert() | syntax.Delete():
            raise AssertionError("it changes rows, no definition")
    there = catalog.find(statement.name.text) if statement.name is not None else None
    if there is not None and statement.mode is Mode.IF_NOT_EXISTS:
        _check_kind(statement, there)
        return Nothing(f"{kind_of(there)} {there.name} already stands", there)
    if statement.mode is Mode.ALTER and there is None:
        assert statement.name is not None
        queries = [q.name for q in catalog.queries()]
        raise Mistake(
            f'there is no query "{statement.name.text}"',
            statement.name.span,
            did_you_mean(statement.name.text, queries),
            unknown=statement.name.text,
        )
    if there is not None and statement.mode in (Mode.OR_REPLACE, Mode.ALTER):
        _check_kind(statement, there)
    elif statement.name is not None:
        check_new(statement.name, catalog, _kind_word(statement))
        there = None
    made = _created(statement, catalog, text, default_name)
    if there is None:
        return (made,)
    if _is_same(made.definition, there):
        return Nothing(f"{kind_of(there)} {there.name} is that already", there)
    made = replace(made, replaced=there)
    if isinstance(made.definition, ViewDef):
        return (made, *_rebound(made.definition, there, catalog, statement))
    return (made,)


def _created(
    statement: syntax.Creating,
    catalog: Catalog,
    text: str,
    default_name: str,
) -> Change:
    match statement:
        case syntax.CreateStream():
            return Change(bind_stream(statement), text=_create_text(statement, text))
        case syntax.CreateTable():
            return Change(bind_table(statement), text=_create_text(statement, text))
        case syntax.CreateView():
            return _view(statement, catalog, text)
        case syntax.CreateQuery():
            return _query(statement, catalog, text, default_name)
        case syntax.CreateSink():
            return _sink(statement, catalog, text)


def _kind_word(statement: syntax.Statement) -> str:
    match statement:
        case syntax.CreateStream():
            return "relation" if statement.is_relation else "stream"
        case syntax.CreateTable():
            return "table"
        case syntax.CreateView():
            return "view"
        case syntax.CreateSink():
            return "sink"
        case syntax.CreateQuery() | syntax.SpreadQuery():
            return "query"
        case syntax.AddColumn() | syntax.Drop():
            return statement.kind.lower()
        case syntax.Insert() | syntax.Delete():
            raise AssertionError("it changes rows, no definition")


def _check_kind(statement: syntax.Statement, there: Definition) -> None:
    """A thing is only taken for one of its own kind."""
    wanted = _kind_word(statement)
    if kind_of(there) != wanted:
        assert statement.name is not None
        raise Mistake(f'"{there.name}" is a {kind_of(there)}, not a {wanted}', statement.name.span)


def _is_same(made: Definition, there: Definition) -> bool:
    if isinstance(made, QueryDef) and isinstance(there, QueryDef):
        return there.reason is None and made.plan == there.plan and not made.from_now
    if isinstance(made, ViewDef) and isinstance(there, ViewDef):
        return made.plan == there.plan
    return made == there


def _rebound(
    view: ViewDef, there: Definition, catalog: Catalog, statement: syntax.Statement
) -> Iterator[Change]:
    """Whoever reads a view that is replaced, by its own text, over the new one."""
    current = catalog.with_definition(view)
    for user in _in_order(dependents(there, catalog), catalog):
        try:
            parsed = parse_at(user.text, 0)
            assert isinstance(parsed, syntax.CreateView | syntax.CreateQuery)
            change = _created(parsed, current, user.text, user.name)
        except Mistake as mistake:
            if isinstance(user, QueryDef) and user.reason is not None:
                continue  # it did not stand before
            assert statement.name is not None
            message = f"{kind_of(user)} {user.name} could not stand on it: {mistake.message}"
            raise Mistake(message, statement.name.span, mistake.hint) from None
        if _is_same(change.definition, user):
            change = replace(change, definition=user)  # it is written down behind the view
        yield replace(change, replaced=user)
        current = current.with_definition(change.definition)


def _in_order(users: list[ViewDef | QueryDef], catalog: Catalog) -> list[ViewDef | QueryDef]:
    """All that reads them, directly or not; each after what it reads."""
    found: dict[str, ViewDef | QueryDef] = {}
    waiting = list(users)
    while waiting:
        user = waiting.pop()
        if user.name not in found:
            found[user.name] = user
            waiting += dependents(user, catalog)
    order = list(catalog.definitions.values())  # a definition stands behind what it reads
    return sorted(found.values(), key=order.index)


def kind_of(definition: Definition) -> str:
    match definition:
        case StreamDef():
            if definition.is_table:
                return "table"
            return "relation" if definition.is_relation else "stream"
        case ViewDef():
            return "view"
        case QueryDef():
            return "query"
        case SinkDef():
            return "sink"
        case SetAside():
            return definition.kind


def check_new(name: syntax.Name, catalog: Catalog, kind: str) -> None:
    there = catalog.find(name.text)
    if there is not None:
        hint = None
        if kind_of(there) == kind and kind in ("query", "view"):
            hint = f"CREATE OR REPLACE {kind.upper()} replaces it"
        elif kind_of(there) == kind:
            hint = f"CREATE {kind.upper()} IF NOT EXISTS leaves it as it is; or DROP it first"
        raise Mistake(f'there already is a {kind_of(there)} "{there.name}"', name.span, hint)


def _view(statement: syntax.CreateView, catalog: Catalog, text: str) -> Change:
    context = Context(catalog, text, defining=statement.name.text)
    bound = bind_typed(statement.query, context)
    plan = renamed(bound.node, statement.columns) if statement.columns else bound.node
    _check_size(plan, statement)
    written = _create_text(statement, text)
    view = ViewDef(statement.name.text, plan, written)
    return Change(view, warnings=_warnings(context, text), text=written)


def _query(statement: syntax.CreateQuery, catalog: Catalog, text: str, default_name: str) -> Change:
    name = statement.name.text if statement.name is not None else default_name
    context = Context(catalog, text, defining=name if statement.name else None)
    bound = bind_typed(statement.query, context)
    _check_printable(bound)
    _check_size(bound.node, statement)
    written = _create_text(statement, text)
    query = QueryDef(name, bound.node, written, statement.from_now)
    return Change(query, warnings=_warnings(context, text), text=written)


def _check_size(plan: Node, statement: syntax.CreateView | syntax.CreateQuery) -> None:
    excess = size_of(plan).excess()
    if excess is not None:
        start = statement.span[0]
        span = statement.name.span if statement.name is not None else (start, start + 6)
        hint = "divide it: write a part of it to a sink, and read that as a stream"
        raise Mistake(f"this is too large to run: {excess}", span, hint)


def _sink(statement: syntax.CreateSink, catalog: Catalog, text: str) -> Change:
    wanted = statement.query
    query = catalog.find(wanted.text)
    if query is None:
        hint = did_you_mean(wanted.text, [q.name for q in catalog.queries()])
        message = f'there is no query "{wanted.text}"'
        raise Mistake(message, wanted.span, hint, unknown=wanted.text)
    if not isinstance(query, QueryDef):
        hint = f"a sink writes a query's rows: CREATE QUERY … AS SELECT * FROM {query.name}"
        raise Mistake(f'"{query.name}" is a {kind_of(query)}', wanted.span, hint)
    sink = SinkDef(statement.name.text, query.name, statement.target, options_of(statement.options))
    return Change(sink, text=_create_text(statement, text))


def _add_column(statement: syntax.AddColumn, catalog: Catalog, text: str) -> Change:
    there = catalog.find(statement.name.text)
    if there is None:
        hint = did_you_mean(statement.name.text, [s.name for s in catalog.streams()])
        message = f'there is no {statement.kind.lower()} "{statement.name.text}"'
        raise Mistake(message, statement.name.span, hint, unknown=statement.name.text)
    _check_kind(statement, there)
    assert isinstance(there, StreamDef)
    start, end = statement.span
    return Change(with_column(there, statement.column), replaced=there, text=text[start:end])


def _create_text(statement: syntax.Statement, text: str) -> str:
    """The statement as a plain CREATE; a bare query as it stands."""
    start, end = statement.span
    if statement.name is None or getattr(statement, "mode", Mode.NEW) is Mode.NEW:
        return text[start:end]
    return f"CREATE {_kind_word(statement).upper()} {text[statement.name.span[0] : end]}"


def _warnings(context: Context, text: str) -> tuple[Diagnostic, ...]:
    return tuple(w.diagnostic(text, "warning") for w in context.findings.warnings)


def _check_printable(bound: Bound) -> None:
    for f, span in zip(bound.node.schema, bound.spans, strict=True):
        if f.type == INTERVAL:
            hint = "print EXTRACT(SECOND FROM …) of it"
            raise Mistake(f'column "{f.name}" is an INTERVAL, which has no output form', span, hint)


def _drop(statement: syntax.Drop, catalog: Catalog) -> tuple[Change, ...] | Nothing:
    name = statement.name
    there = catalog.find(name.text)
    wanted = statement.kind.lower()
    if there is None:
        if statement.if_exists:
            return Nothing(f"there is no {wanted} {name.text} to drop")
        raise Mistake(f'there is no {wanted} "{name.text}"', name.span, unknown=name.text)
    if kind_of(there) != wanted:
        hint = f"DROP {kind_of(there).upper()} {there.name}"
        raise Mistake(f'"{there.name}" is a {kind_of(there)}', name.span, hint)
    users = dependents(there, catalog)
    if users:
        what = ", ".join(f"{kind_of(u)} {u.name}" for u in users[:5])
        more = f" and {len(users) - 5} more" if len(users) > 5 else ""
        message = f'"{there.name}" is still used by {what}{more}'
        raise Mistake(message, name.span, "drop those first")
    # A query's sinks have nothing to write without it.
    sinks = (s for s in catalog.sinks() if s.query == there.name and isinstance(there, QueryDef))
    return (*(Change(s, dropped=True) for s in sinks), Change(there, dropped=True))
