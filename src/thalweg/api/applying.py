"""Files as what shall stand: what has to be created, altered, replaced and dropped to get there.

Files may come in any order: a statement waits for what it reads. What stands and is in no file is
dropped; what stands as the files say is left alone, so that applying twice does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thalweg.api.pieces import Piece, Unreadable
from thalweg.cql import Script
from thalweg.cql.bind.dependencies import dependents
from thalweg.cql.bind.statements import Change, Nothing, changes_of
from thalweg.cql.errors import Diagnostic, Mistake
from thalweg.cql.parser import parse_each
from thalweg.cql.syntax import AddColumn, CreateQuery, Drop, Mode, SpreadQuery, Statement
from thalweg.engine.shared.explain.state import Size
from thalweg.engine.site import Site
from thalweg.engine.site.book import kind_of
from thalweg.engine.site.costs import lost_with
from thalweg.engine.site.scripts import Text
from thalweg.engine.sources.registry import is_pushed
from thalweg.plan.catalog import (
    Catalog,
    Definition,
    QueryDef,
    SetAside,
    SinkDef,
    StreamDef,
    ViewDef,
)

_Computed = ViewDef | QueryDef


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: create, alter, replace, recreate (its state is lost) or drop."""

    verb: str
    kind: str
    name: str
    detail: str = ""
    lost: Size = field(default_factory=Size)

    def data(self) -> dict[str, Any]:
        return {
            "do": self.verb,
            "kind": self.kind,
            "name": self.name,
            "detail": self.detail,
            "lost": self.lost.data(),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the texts define."""

    catalog: Catalog
    changes: dict[str, tuple[Change, Piece]]  # by lower-cased name, in order
    warnings: list[tuple[Piece, Diagnostic]]


def wanted(pieces: Sequence[Piece]) -> Wanted:
    """Raises Unreadable."""
    mistakes: list[tuple[Piece, Diagnostic]] = []
    waiting: list[tuple[Piece, Statement]] = []
    for piece in pieces:
        statements, wrong = parse_each(piece.cql)
        mistakes += [(piece, m.diagnostic(piece.cql)) for m in wrong]
        for statement in statements:
            refused = _refused(statement)
            if refused is None:
                waiting.append((piece, statement))
            else:
                mistakes.append((piece, refused.diagnostic(piece.cql)))
    found = Wanted(Catalog(), {}, [])
    while waiting:
        found, left, unknown = _round(found, waiting)
        mistakes += [(p, m.diagnostic(p.cql)) for p, m in left if m.unknown is None]
        if len(unknown) == len(waiting):
            mistakes += [(p, m.diagnostic(p.cql)) for p, m in left if m.unknown is not None]
            break
        waiting = unknown
    if mistakes:
        raise Unreadable(mistakes)
    return found


def _refused(statement: Statement) -> Mistake | None:
    if isinstance(statement, Drop | AddColumn | SpreadQuery) or (
        isinstance(statement, CreateQuery) and statement.mode is Mode.ALTER
    ):
        hint = "leave it out: what is in no file is dropped, and what differs is changed"
        return Mistake("files to apply say what shall stand", statement.span, hint)
    if statement.name is None:
        hint = "CREATE QUERY name AS …"
        return Mistake("a query to apply needs a name", statement.span, hint)
    return None


def _round(
    found: Wanted, waiting: list[tuple[Piece, Statement]]
) -> tuple[Wanted, list[tuple[Piece, Mistake]], list[tuple[Piece, Statement]]]:
    """Take what can be taken; gives the mistakes of the others, and who may be right later."""
    catalog, left, later = found.catalog, [], []
    for piece, statement in waiting:
        try:
            changes = changes_of(statement, catalog, piece.cql, "")
        except Mistake as mistake:
            left.append((piece, mistake))
            if mistake.unknown is not None:
                later.append((piece, statement))
            continue
        if not isinstance(changes, Nothing):
            change = changes[0]
            catalog = catalog.with_definition(change.definition)
            found.changes[change.definition.name.lower()] = change, piece
            found.warnings.extend((piece, w) for w in change.warnings)
    return Wanted(catalog, found.changes, found.warnings), left, later


@dataclass(slots=True)
class Planned:
    steps: list[Step]
    scripts: list[Script]
    texts: list[Text]
    unchanged: int


def plan(site: Site, target: Wanted) -> Planned:
    """From what stands to what is wanted. No tick may run meanwhile."""
    return _Planning(site, target).planned()


class _Planning:
    def __init__(self, site: Site, target: Wanted) -> None:
        self._site, self._target, self._standing = site, target, site.catalog
        self._steps: list[Step] = []
        self._changes: list[tuple[Change, Path | None]] = []
        self._definitions: dict[str, Definition] = {}
        self._unchanged = 0

    def planned(self) -> Planned:
        recreated = self._recreated()
        undesired = [
            d
            for key, d in self._standing.definitions.items()
            if key not in self._target.changes and key not in recreated
        ]
        for definition in self._to_be_dropped(list(recreated.values())):
            self._changes.append((Change(definition, dropped=True), None))
        for key, (change, piece) in self._target.changes.items():
            self._want(key, change, piece, is_new=key in recreated, was=recreated.get(key))
        for definition in self._to_be_dropped(undesired):
            self._step("drop", definition, lost=definition)
            self._changes.append((Change(definition, dropped=True), None))
        catalog = Catalog(self._definitions)
        scripts = [
            Script(catalog, _queries(c), (), (c,), tuple(c.warnings)) for c, _ in self._changes
        ]
        texts = [Text("", folder) for _, folder in self._changes]
        return Planned(self._steps, scripts, texts, self._unchanged)

    def _want(
        self, key: str, change: Change, piece: Piece, *, is_new: bool, was: Definition | None
    ) -> None:
        definition, there = change.definition, self._standing.definitions.get(key)
        if there is None or is_new:
            self._definitions[key] = definition
            self._changes.append((change, piece.base))
            self._step("create" if was is None else "recreate", definition, lost=was)
        elif isinstance(definition, StreamDef) and isinstance(there, StreamDef):
            self._definitions[key] = self._altered(there, definition)
        elif self._is_same(definition, there, piece):
            self._definitions[key] = there
            self._unchanged += 1
        else:
            self._definitions[key] = definition
            replaced = Change(definition, False, change.warnings, there, change.text)
            self._changes.append((replaced, piece.base))
            self._step("replace", definition, lost=there)

    def _altered(self, there: StreamDef, definition: StreamDef) -> StreamDef:
        added = definition.fields[len(there.fields) :]
        if not added:
            self._unchanged += 1
            return there
        for column in added:
            name, kind = _quoted(there.name), kind_of(there).upper()
            text = f"ALTER {kind} {name} ADD COLUMN {_quoted(column.name)} {column.type}"
            self._changes.append((Change(definition, replaced=there, text=text), None))
        columns = ", ".join(map(str, added))
        self._step("alter", definition, detail=f"add column {columns}")
        return definition

    def _recreated(self) -> dict[str, Definition]:
        """What stands and can't become what is wanted, with all that reads it."""
        found: dict[str, Definition] = {}
        for key, (change, piece) in self._target.changes.items():
            there = self._standing.definitions.get(key)
            if there is not None and not self._can_become(there, change.definition, piece):
                found[key] = there
        waiting = list(found.values())
        while waiting:
            definition = waiting.pop()
            users: list[Definition] = [*dependents(definition, self._standing)]
            if isinstance(definition, QueryDef):
                users += [s for s in self._standing.sinks() if s.query == definition.name]
            for user in users:
                if user.name.lower() not in found:
                    found[user.name.lower()] = user
                    waiting.append(user)
        return found

    def _can_become(self, there: Definition, definition: Definition, piece: Piece) -> bool:
        if kind_of(there) != kind_of(definition):
            return False
        if isinstance(there, StreamDef) and isinstance(definition, StreamDef):
            folder = self._site.book.folder_of(there.name)
            has_moved = not is_pushed(there) and folder != _folder(piece)
            is_longer = definition.fields[: len(there.fields)] == there.fields
            return is_longer and _rest(there) == _rest(definition) and not has_moved
        if isinstance(there, SetAside):
            return there.kind == "view"
        if isinstance(there, QueryDef) and not self._is_same(definition, there, piece):
            return self._site.status.state(there) != "finished"
        return True

    def _is_same(self, definition: Definition, there: Definition, piece: Piece) -> bool:
        if isinstance(definition, _Computed) and isinstance(there, _Computed):
            if isinstance(there, QueryDef) and there.reason is not None:
                return False
            if definition.plan == there.plan:
                return True
            # It may be older than a column of what it reads, and goes on without it.
            has_text = definition.text.split() == there.text.split()
            return has_text and not self._reads_a_changed_view(definition)
        if isinstance(definition, SinkDef) and isinstance(there, SinkDef):
            folder = self._site.book.folder_of(there.name)
            return definition == there and folder in (None, _folder(piece))
        return definition == there

    def _reads_a_changed_view(self, definition: ViewDef | QueryDef) -> bool:
        target, standing = self._target.catalog, self._standing
        return any(
            definition in dependents(view, target)
            and (
                not isinstance(there := standing.find(view.name), ViewDef)
                or not self._is_same(view, there, self._target.changes[view.name.lower()][1])
            )
            for view in target.views()
            if view is not definition
        )

    def _to_be_dropped(self, definitions: list[Definition]) -> Iterator[Definition]:
        """Readers before what they read."""
        order = list(self._standing.definitions.values())
        kinds = (SinkDef, QueryDef, ViewDef, SetAside, StreamDef)
        return iter(
            sorted(
                definitions,
                key=lambda d: (kinds.index(type(d)), -order.index(d)),
            )
        )

    def _step(
        self, verb: str, definition: Definition, *, detail: str = "", lost: Definition | None = None
    ) -> None:
        size = Size() if lost is None else lost_with(self._site, lost)
        self._steps.append(Step(verb, kind_of(definition), definition.name, detail, size))


def _queries(change: Change) -> tuple[QueryDef, ...]:
    definition = change.definition
    return (definition,) if isinstance(definition, QueryDef) and not change.dropped else ()


def _rest(stream: StreamDef) -> tuple[object, ...]:
    """All but the columns."""
    return (
        stream.timestamp.lower(),
        stream.timestamp_type,
        stream.resolution_us,
        stream.lateness,
        stream.idle_ms,
        stream.source,
        stream.options,
    )


def _folder(piece: Piece) -> str | None:
    return str(piece.base.resolve()) if piece.base is not None else None


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def apply(site: Site, pieces: Sequence[Piece], *, dry_run: bool) -> Planned:
    """Do it, in one transaction, or only say what would be done."""
    target = wanted(pieces)
    if dry_run:
        with site.gate.between_ticks():
            return plan(site, target)
    made: list[Planned] = []

    def compiled(_: Catalog) -> tuple[Sequence[Script], Sequence[Text]]:
        made.append(plan(site, target))
        return made[0].scripts, made[0].texts

    site.change(compiled)
    return made[0]
