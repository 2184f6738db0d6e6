"""The catalog after a restart, made of the texts in the book.

A text that this version does not understand, or can't run, does not keep the others from starting:
what it made is set aside with the reason, and can be replaced or dropped.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from thalweg.engine.failures import FAILURES
from thalweg.engine.site.book import COLUMN, Statement, script_of
from thalweg.engine.site.parking import is_environment_error, last_line
from thalweg.engine.site.scripts import Compiler
from thalweg.plan.catalog import Catalog, Definition, QueryDef, SetAside, StreamDef
from thalweg.plan.shapes import Shape
from thalweg.plan.types import BIGINT

log = logging.getLogger(__name__)

NAME = "<catalog>"
# Of a query that no version has understood that wrote shapes down.
NO_SHAPE = Shape((), (StreamDef("unknown", (), "ts", BIGINT),), None)


@dataclass
class Restored:
    """What a part of the book has become."""

    catalog: Catalog
    queries: list[QueryDef] = field(default_factory=list)  # those with a plan
    failed: dict[str, str] = field(default_factory=dict)  # name -> reason


def restored(
    compiler: Compiler,
    statements: Sequence[Statement],
    catalog: Catalog,
    stand_in: Callable[[Statement, str], Definition] | None = None,
) -> Restored:
    """All of them; if there is a mistake, each by itself, and a stand-in for those that fail."""
    try:
        script = compiler(script_of(s.text for s in statements), catalog, name=NAME)
        return Restored(script.catalog, list(script.queries))
    except FAILURES as error:
        raise_if_environment(error)
    found = Restored(catalog)
    for statement in statements:
        try:
            script = compiler(script_of([statement.text]), found.catalog, name=NAME)
        except FAILURES as error:
            raise_if_environment(error)
            reason = reason_of(error)
            log.error("%s %s is set aside: %s", statement.kind, statement.name, reason)
            found.failed[statement.name] = reason
            made = (stand_in or _set_aside)(statement, reason)
            found.catalog = found.catalog.with_definition(made)
        else:
            found.catalog = script.catalog
            found.queries += script.queries
    return found


def _set_aside(statement: Statement, reason: str) -> Definition:
    # A stream without a column that it had would take in other tuples.
    kind = "stream" if statement.kind == COLUMN else statement.kind
    return SetAside(statement.name, kind, statement.text, reason)


def registered(
    register: Callable[[Iterable[QueryDef]], None], queries: Sequence[QueryDef]
) -> dict[str, str]:
    """Register all that can be; gives the others, with the reason."""
    try:
        register(queries)
        return {}
    except FAILURES as error:
        raise_if_environment(error)
    failed = {}
    for query in queries:
        try:
            register([query])
        except FAILURES as error:
            raise_if_environment(error)
            failed[query.name] = reason_of(error)
            log.error("query %s is set aside: %s", query.name, failed[query.name])
    return failed


def reason_of(error: BaseException) -> str:
    """The first message of a text's mistakes; anything else with its kind."""
    if getattr(error, "diagnostics", None) and error.args:
        return str(error.args[0])
    return last_line(error)


def raise_if_environment(error: BaseException) -> None:
    """A full disk is nobody's fault: the start is tried again when there is room."""
    if is_environment_error(error) or isinstance(error, sqlite3.Error):
        raise error
