"""Syntax tree to plan: names, types, windows. Nothing is optimised here."""

from __future__ import annotations

from itertools import count

from thalweg.cql.bind.statements import Change, change_of
from thalweg.cql.errors import CqlError, Mistake
from thalweg.cql.syntax import Statement
from thalweg.plan.catalog import Catalog

__all__ = ["Change", "bind_statement", "free_name"]


def bind_statement(statement: Statement, catalog: Catalog, text: str) -> Change:
    """What a statement of this text does to the catalog. Raises CqlError."""
    try:
        return change_of(statement, catalog, text, free_name(catalog))
    except Mistake as mistake:
        raise CqlError([mistake.diagnostic(text)], text) from None


def free_name(catalog: Catalog, start: int = 1) -> str:
    """The first of q1, q2, … that nothing is called by."""
    return next(name for n in count(start) if catalog.find(name := f"q{n}") is None)
