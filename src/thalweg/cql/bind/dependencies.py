"""Which views and queries read a definition.

Plans hold views inlined, so the names are taken from the texts, which are kept with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.cql import syntax
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
    return key.replace('"', '""') in text.lower() and key in _names_read(text)


def _names_read(text: str) -> set[str]:
    names: set[str] = set()
    for statement in parse_script(text):
        if isinstance(statement, (syntax.CreateView, syntax.CreateQuery)):
            names.update(_in_query(statement.query, frozenset()))
    return names


def _in_query(query: syntax.Query, local: frozenset[str]) -> Iterator[str]:
    match query:
        case syntax.Select():
            for item in query.sources:
                yield from _in_item(item, local)
            if query.where is not None:
                yield from _in_expression(query.where, local)
        case syntax.SetQuery(_, _, left, right):
            yield from _in_query(left, local)
            yield from _in_query(right, local)
        case syntax.StreamQuery(_, inner):
            yield from _in_query(inner, local)
        case syntax.WithQuery(definitions, body):
            for definition in definitions:
                yield from _in_query(definition.query, local)
                local |= {definition.name.text.lower()}
            yield from _in_query(body, local)


def _in_item(item: syntax.FromItem, local: frozenset[str]) -> Iterator[str]:
    match item:
        case syntax.TableRef(name):
            if name.text.lower() not in local:
                yield name.text.lower()
        case syntax.SubqueryRef(query):
            yield from _in_query(query, local)
        case syntax.JoinRef(left, right):
            yield from _in_item(left, local)
            yield from _in_item(right, local)


def _in_expression(expr: syntax.Expr, local: frozenset[str]) -> Iterator[str]:
    """Sub-queries are the only expressions that read anything by name."""
    match expr:
        case syntax.Exists(query):
            yield from _in_query(query, local)
        case syntax.InQuery(args, query):
            yield from _in_query(query, local)
            for arg in args:
                yield from _in_expression(arg, local)
        case _:
            for child in syntax.children(expr):
                yield from _in_expression(child, local)
