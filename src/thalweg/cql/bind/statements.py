"""Statements: what each one adds to or takes from the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.bind.dependencies import dependents
from thalweg.cql.bind.queries import Bound, bind_typed, renamed
from thalweg.cql.bind.streams import bind_stream
from thalweg.cql.bind.tables import bind_table
from thalweg.cql.errors import Diagnostic, Mistake
from thalweg.plan.catalog import Catalog, Definition, QueryDef, StreamDef, ViewDef
from thalweg.plan.nodes import Node
from thalweg.plan.size import size_of
from thalweg.plan.types import INTERVAL


@dataclass(frozen=True, slots=True)
class Change:
    """A definition that was created, or dropped."""

    definition: Definition
    dropped: bool = False
    warnings: tuple[Diagnostic, ...] = ()


def change_of(
    statement: syntax.Statement, catalog: Catalog, text: str, default_name: str
) -> Change:
    """Raises Mistake. `default_name` is for a bare query."""
    try:
        return _change_of(statement, catalog, text, default_name)
    except RecursionError:
        # Operators nested to the left can still be too many for Python's stack.
        start = statement.span[0]
        raise Mistake("this statement is nested too deeply", (start, start + 1)) from None


def _change_of(
    statement: syntax.Statement, catalog: Catalog, text: str, default_name: str
) -> Change:
    match statement:
        case syntax.CreateStream():
            check_new(statement.name, catalog)
            return Change(bind_stream(statement))
        case syntax.CreateTable():
            check_new(statement.name, catalog)
            return Change(bind_table(statement))
        case syntax.CreateView():
            return _view(statement, catalog, text)
        case syntax.CreateQuery():
            return _query(statement, catalog, text, default_name)
        case syntax.Drop():
            return _drop(statement, catalog)
        case _:
            raise AssertionError("it changes rows, no definition")


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


def check_new(name: syntax.Name, catalog: Catalog) -> None:
    there = catalog.find(name.text)
    if there is not None:
        raise Mistake(f'there already is a {kind_of(there)} "{there.name}"', name.span)


def _view(statement: syntax.CreateView, catalog: Catalog, text: str) -> Change:
    check_new(statement.name, catalog)
    context = Context(catalog, text, defining=statement.name.text)
    bound = bind_typed(statement.query, context)
    plan = renamed(bound.node, statement.columns) if statement.columns else bound.node
    _check_size(plan, statement)
    view = ViewDef(statement.name.text, plan, _source(statement, text))
    return Change(view, warnings=_warnings(context, text))


def _query(statement: syntax.CreateQuery, catalog: Catalog, text: str, default_name: str) -> Change:
    if statement.name is not None:
        check_new(statement.name, catalog)
    name = statement.name.text if statement.name is not None else default_name
    context = Context(catalog, text, defining=name if statement.name else None)
    bound = bind_typed(statement.query, context)
    _check_printable(bound)
    _check_size(bound.node, statement)
    query = QueryDef(name, bound.node, _source(statement, text), statement.from_now)
    return Change(query, warnings=_warnings(context, text))


def _check_size(plan: Node, statement: syntax.CreateView | syntax.CreateQuery) -> None:
    excess = size_of(plan).excess()
    if excess is not None:
        start = statement.span[0]
        span = statement.name.span if statement.name is not None else (start, start + 6)
        hint = "divide it: write a part of it to a sink, and read that as a stream"
        raise Mistake(f"this is too large to run: {excess}", span, hint)


def _source(statement: syntax.Statement, text: str) -> str:
    return text[statement.span[0] : statement.span[1]]


def _warnings(context: Context, text: str) -> tuple[Diagnostic, ...]:
    return tuple(w.diagnostic(text, "warning") for w in context.findings.warnings)


def _check_printable(bound: Bound) -> None:
    for f, span in zip(bound.node.schema, bound.spans, strict=True):
        if f.type == INTERVAL:
            hint = "print EXTRACT(SECOND FROM …) of it"
            raise Mistake(f'column "{f.name}" is an INTERVAL, which has no output form', span, hint)


def _drop(statement: syntax.Drop, catalog: Catalog) -> Change:
    name = statement.name
    there = catalog.find(name.text)
    wanted = statement.kind.lower()
    if there is None:
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
    return Change(there, dropped=True)
