"""Scripts, parsed and bound statement by statement: a whole text or nothing, or each for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from thalweg.cql.bind.statements import Change, Nothing, changes_of
from thalweg.cql.bind.tables import Write, bind_write
from thalweg.cql.errors import DEFAULT_NAME, FOLLOWS, CqlError, Diagnostic, Mistake, was_to_be_made
from thalweg.cql.parser import parse_each
from thalweg.cql.syntax import CreateQuery, Delete, Drop, Insert, PlacedQuery, Statement
from thalweg.cql.templates import Recurring, Templates
from thalweg.plan.catalog import Catalog, Definition, QueryDef

NO_DEFINITIONS = Catalog()
_TEMPLATES = Templates()  # of all texts: plans do not depend on who asks for them

Written = Statement | Recurring


@dataclass(frozen=True, slots=True)
class Script:
    """What a text defines. `catalog` is the one after the last statement."""

    catalog: Catalog
    queries: tuple[QueryDef, ...]  # created by the text and not dropped by it, in order
    statements: tuple[Written, ...]
    changes: tuple[Change, ...]  # in order
    warnings: tuple[Diagnostic, ...]
    errors: tuple[Diagnostic, ...] = ()  # of statements that are left out
    writes: tuple[Write, ...] = ()  # of INSERT and DELETE, which are not among the statements
    notes: tuple[str, ...] = ()  # about statements that change nothing
    kept: tuple[QueryDef, ...] = ()  # queries that such statements have found


def compile_script(
    text: str,
    catalog: Catalog = NO_DEFINITIONS,
    *,
    name: str = DEFAULT_NAME,
    placed: bool = False,
) -> Script:
    """Raises CqlError with the first error of every statement; then nothing is registered.
    `placed`: statements may hold plans, as nodes of a network write them."""
    statements, mistakes = parse_each(text, _TEMPLATES.recall)
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    so_far = _Definitions(catalog, statements, placed)
    failed: set[str] = set()
    for statement in statements:
        try:
            so_far.take(statement, text)
        except Mistake as mistake:
            # What only fails because an earlier statement did is not worth a message.
            if mistake.unknown is None or mistake.unknown.lower() not in failed:
                mistakes.append(mistake)
            if statement.name is not None:
                failed.add(statement.name.text.lower())
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    return so_far.script(statements)


def compile_placed(
    text: str, catalog: Catalog = NO_DEFINITIONS, *, name: str = DEFAULT_NAME
) -> Script:
    """As `compile_script`, for what a node of a network has written itself."""
    return compile_script(text, catalog, name=name, placed=True)


def compile_each(texts: Sequence[str], catalog: Catalog = NO_DEFINITIONS) -> list[Script]:
    """Every statement for itself, one text after the other: those with a mistake are left out."""
    parsed = [parse_each(text, _TEMPLATES.recall) for text in texts]
    so_far = _Definitions(catalog, (s for statements, _ in parsed for s in statements))
    scripts = []
    for text, (statements, mistakes) in zip(texts, parsed, strict=True):
        right = []
        for statement in statements:
            try:
                so_far.take(statement, text)
                right.append(statement)
            except Mistake as mistake:
                if mistake.unknown and was_to_be_made(mistake.unknown, text[: mistake.span[0]]):
                    mistake.hint = FOLLOWS
                mistakes.append(mistake)
        mistakes.sort(key=lambda m: m.span)
        scripts.append(so_far.script(tuple(right), [m.diagnostic(text) for m in mistakes]))
    return scripts


class _Definitions:
    """A catalog that grows with every statement.

    One dictionary is changed in place: a copy per statement would be quadratic in their number.
    """

    def __init__(
        self, catalog: Catalog, statements: Iterable[Written], placed: bool = False
    ) -> None:
        self._may_be_placed = placed
        self._definitions: dict[str, Definition] = dict(catalog.definitions)
        self._catalog = Catalog(self._definitions)
        self._names = _free_names(statements, self._catalog)
        self._changes: list[Change] = []
        self._writes: list[Write] = []
        self._notes: list[str] = []
        self._kept: list[QueryDef] = []

    def take(self, statement: Written, text: str) -> None:
        """Raises Mistake, and then nothing has changed."""
        if isinstance(statement, Insert | Delete):
            self._writes.append(bind_write(statement, self._catalog, text))
            return
        if isinstance(statement, CreateQuery) and isinstance(statement.query, PlacedQuery):
            self._check_placed(statement.query)
        is_bare = isinstance(statement, CreateQuery | Recurring) and statement.name is None
        name = next(self._names) if is_bare else ""
        changes = self._changes_of(statement, text, name)
        if isinstance(changes, Nothing):
            self._notes.append(changes.note)
            if isinstance(changes.there, QueryDef):
                self._kept.append(changes.there)
            return
        self._changes.extend(changes)
        for change in changes:
            key = change.definition.name.lower()
            if change.dropped:
                del self._definitions[key]
            else:
                self._definitions[key] = change.definition

    def _changes_of(self, statement: Written, text: str, name: str) -> tuple[Change, ...] | Nothing:
        known = self._known(statement, text)
        if known is not None:
            return (known.change(self._catalog, text, name),)
        if isinstance(statement, Recurring):
            statement = statement.parsed(text)
        changes = changes_of(statement, self._catalog, text, name)
        if isinstance(changes, Nothing) or not isinstance(statement, CreateQuery):
            return changes
        if not isinstance(statement.query, PlacedQuery):
            _TEMPLATES.learn(statement, changes[0], self._catalog, text)
        return changes

    def _check_placed(self, query: PlacedQuery) -> None:
        if not self._may_be_placed:
            hint = "leave it out, and write AS and the query"
            raise Mistake("only the nodes of a network write PLACED", query.span, hint)

    def _known(self, statement: Written, text: str) -> Recurring | None:
        if isinstance(statement, Recurring) and statement.fits(self._catalog):
            return statement
        if not isinstance(statement, CreateQuery | Recurring):
            return None
        # It may have been learnt from an earlier statement since the text was parsed.
        found = _TEMPLATES.recall(text, statement.span[0])
        return found[0] if found is not None and found[0].fits(self._catalog) else None

    def script(self, statements: tuple[Written, ...], errors: Iterable[Diagnostic] = ()) -> Script:
        """Of the statements that were taken since the last one."""
        changes, self._changes = tuple(self._changes), []
        writes, self._writes = tuple(self._writes), []
        statements = tuple(s for s in statements if not isinstance(s, Insert | Delete))
        notes, self._notes = tuple(self._notes), []
        kept, self._kept = tuple(self._kept), []
        created = (c.definition for c in changes if not c.dropped)
        queries = tuple(
            d
            for d in created
            if isinstance(d, QueryDef) and self._definitions.get(d.name.lower()) is d
        )
        warnings = tuple(w for c in changes for w in c.warnings)
        return Script(
            self._catalog,
            queries,
            statements,
            changes,
            warnings,
            tuple(errors),
            writes,
            notes,
            tuple(q for q in kept if self._definitions.get(q.name.lower()) is q),
        )


def _free_names(statements: Iterable[Written], catalog: Catalog) -> Iterator[str]:
    """q1, q2, … without those that the catalog has or the texts define themselves."""
    given = {
        s.name.text.lower()
        for s in statements
        if s.name is not None and not isinstance(s, Drop | Insert | Delete)
    }
    return (
        name
        for name in (f"q{number}" for number in count(1))
        if name not in given and catalog.find(name) is None
    )
