"""Syntax tree to plan: names, types, windows. Nothing is optimised here."""

from __future__ import annotations

from itertools import count

from thalweg.cql.bind.statements import Change, Nothing, changes_of
from thalweg.cql.errors import CqlError, Mistake
from thalweg.cql.syntax import CreateQuery, Statement
from thalweg.plan.catalog import Catalog

__all__ = ["Change", "Nothing", "bind_statement", "free_name"]


def bind_statement(
    statement: Statement, catalog: Catalog, text: str, *, default_name: str | None = None
) -> tuple[Change, ...] | Nothing:
    """What a statement of this text does to the catalog. Raises CqlError.

    A bare query gets the default name, or else the first of q1, q2, … that is free.
    """
    is_bare = isinstance(statement, CreateQuery) and statement.name is None
    name = default_name or (free_name(catalog) if is_bare else "")
    try:
        return changes_of(statement, catalog, text, name)
    except Mistake as mistake:
        raise CqlError([mistake.diagnostic(text)], text) from None


def free_name(catalog: Catalog) -> str:
    """The first of q1, q2, … that nothing is called by."""
    return next(name for n in count(1) if catalog.find(name := f"q{n}") is None)
