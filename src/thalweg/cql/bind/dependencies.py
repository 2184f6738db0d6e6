"""Which views and queries read a definition.

Plans hold views inlined, so the names are taken from the texts, which are kept with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from thalweg.cql import syntax
from thalweg.cql.errors import CqlError
from thalweg.cql.parser import parse_script
from thalweg.plan.catalog import Catalog, Definition, QueryDef, SinkDef, StreamDef, ViewDef
from thalweg.plan.nodes import base_streams


def dependents(definition: Definition, catalog: Catalog) -> list[ViewDef | QueryDef]:
    if isinstance(definition, QueryDef | SinkDef):
        return []
    key = definition.name.lower()
    if isinstance(definition, StreamDef):
        views = {
            v.name.lower(): v
            for v in catalog.views()
            if any(s.name.lower() == key for s in base_streams(v.plan))
        }
        # Queries can be very many, and their plans would have to be made: the texts will do.
        keys = (key, *views)
        users = [q for q in catalog.queries() if any(_reads(q.text, k) for k in keys)]
        return [*views.values(), *users]
    others: list[ViewDef | QueryDef] = [*catalog.views(), *catalog.queries()]
    return [u for u in others if u is not definition and _reads(u.text, key)]


def _reads(text: str, key: str) -> bool:
    # Most texts do not even have the word, and need not be parsed again.
    return key.replace('"', '""') in text.lower() and key in names_read(text)


def names_read(text: str) -> set[str]:
    """What the views and queries of a text read, in lower case; some of it may be its own."""
    names: set[str] = set()
    try:
        statements = parse_script(text)
    except CqlError:  # of a query that is set aside: any name in it may be one that it reads
        return set(re.findall(r"\w+", text.lower()))
    for statement in statements:
        if isinstance(statement, (syntax.CreateView, syntax.CreateQuery)):
            names.update(_in_query(statement.query, frozenset()))
    return names


def _in_query(query: syntax.Query, local: frozenset[str]) -> Iterator[str]:
    match query:
        case syntax.Select():
            for item in query.sources:
                yield from _in_item(item, local)
            for expr in _clauses(query):
                yield from _in_expression(expr, local)
        case syntax.SetQuery(_, _, left, right):
            yield from _in_query(left, local)
            yield from _in_query(right, local)
        case syntax.StreamQuery(_, inner):
            yield from _in_query(inner, local)
        case syntax.TopQuery(inner, order, _):
            yield from _in_query(inner, local)
            for key in order:
                yield from _in_expression(key.expr, local)
        case syntax.WithQuery(definitions, body):
            for definition in definitions:
                yield from _in_query(definition.query, local)
                local |= {definition.name.text.lower()}
            yield from _in_query(body, local)
        case syntax.PlacedQuery(_, over, _):
            yield from (name.text.lower() for name in over)


def _clauses(select: syntax.Select) -> Iterator[syntax.Expr]:
    """The expressions of a block, but for those in FROM."""
    yield from (i.expr for i in select.items if isinstance(i, syntax.SelectItem))
    yield from select.group_by
    yield from (e for e in (select.where, select.having) if e is not None)


def _in_item(item: syntax.FromItem, local: frozenset[str]) -> Iterator[str]:
    match item:
        case syntax.TableRef(name):
            if name.text.lower() not in local:
                yield name.text.lower()
        case syntax.SubqueryRef(query):
            yield from _in_query(query, local)
        case syntax.JoinRef(left, right, condition):
            yield from _in_item(left, local)
            yield from _in_item(right, local)
            if condition is not None:
                yield from _in_expression(condition, local)


def _in_expression(expr: syntax.Expr, local: frozenset[str]) -> Iterator[str]:
    """Sub-queries are the only expressions that read anything by name."""
    match expr:
        case syntax.Exists(query) | syntax.ScalarQuery(query):
            yield from _in_query(query, local)
        case syntax.InQuery(args, query):
            yield from _in_query(query, local)
            for arg in args:
                yield from _in_expression(arg, local)
        case _:
            for child in syntax.children(expr):
                yield from _in_expression(child, local)
