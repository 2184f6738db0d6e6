"""A whole script: parsed and bound statement by statement, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from thalweg.cql.bind.statements import Change, change_of
from thalweg.cql.errors import DEFAULT_NAME, CqlError, Diagnostic, Mistake
from thalweg.cql.parser import parse_script
from thalweg.cql.syntax import CreateQuery, Drop, Statement
from thalweg.plan.catalog import Catalog, Definition, QueryDef

NO_DEFINITIONS = Catalog()


@dataclass(frozen=True, slots=True)
class Script:
    """What a text defines. `catalog` is the one after its last statement."""

    catalog: Catalog
    queries: tuple[QueryDef, ...]  # created by the text and not dropped by it, in order
    statements: tuple[Statement, ...]
    changes: tuple[Change, ...]  # one for each statement
    warnings: tuple[Diagnostic, ...]


def compile_script(
    text: str, catalog: Catalog = NO_DEFINITIONS, *, name: str = DEFAULT_NAME
) -> Script:
    """Raises CqlError with the first error of every statement; then nothing is registered."""
    statements = parse_script(text, name=name)
    # One dictionary is changed in place: a copy per statement would be quadratic in their number.
    definitions: dict[str, Definition] = dict(catalog.definitions)
    so_far = Catalog(definitions)
    names = _free_names(statements, so_far)
    changes: list[Change] = []
    mistakes: list[Mistake] = []
    failed: set[str] = set()
    for statement in statements:
        is_bare = isinstance(statement, CreateQuery) and statement.name is None
        try:
            change = change_of(statement, so_far, text, next(names) if is_bare else "")
        except Mistake as mistake:
            # What only fails because an earlier statement did is not worth a message.
            if mistake.unknown is None or mistake.unknown.lower() not in failed:
                mistakes.append(mistake)
            if statement.name is not None:
                failed.add(statement.name.text.lower())
            continue
        changes.append(change)
        key = change.definition.name.lower()
        if change.dropped:
            del definitions[key]
        else:
            definitions[key] = change.definition
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    created = (c.definition for c in changes if not c.dropped)
    queries = tuple(
        d for d in created if isinstance(d, QueryDef) and definitions.get(d.name.lower()) is d
    )
    warnings = tuple(w for c in changes for w in c.warnings)
    return Script(so_far, queries, statements, tuple(changes), warnings)


def _free_names(statements: tuple[Statement, ...], catalog: Catalog) -> Iterator[str]:
    """q1, q2, … without those that the catalog has or the text defines itself."""
    given = {
        s.name.text.lower() for s in statements if s.name is not None and not isinstance(s, Drop)
    }
    for number in count(1):
        name = f"q{number}"
        if name not in given and catalog.find(name) is None:
            yield name
