"""A user as the author of what a request changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thalweg.api.access.access import Access
from thalweg.engine.site import Site
from thalweg.engine.site.authors import author_now
from thalweg.engine.site.costs import held_by
from thalweg.engine.site.publications import is_internal, is_publication
from thalweg.engine.site.scripts import Change, Script
from thalweg.plan.catalog import Catalog, Definition, QueryDef, SinkDef, ViewDef
from thalweg.runtime.network.node import Node
from thalweg.runtime.trust import User


@dataclass(frozen=True, slots=True)
class UserAuthor:
    user: User
    access: Access
    site: Site
    node: Node | None = None

    @property
    def name(self) -> str:
        return self.user.name

    def makes(self, definition: Definition) -> bool:
        """All but what a node makes for others' sake, or in order to read what others have."""
        return (
            not is_internal(definition) if self.node is None else self.node.own.is_own(definition)
        )

    def check(self, scripts: Sequence[Script], standing: Catalog) -> None:
        """Raises Denied, TooFast."""
        changes = [c for s in scripts for c in s.changes]
        for change in _aimed_at(changes):
            definition = change.definition
            if not self.makes(definition):
                self._check_internal(change)
                continue
            name = definition.query if isinstance(definition, SinkDef) else definition.name
            if (there := standing.find(name)) is not None:
                self.require_own(there)
        self._check_room([c for c in changes if self.makes(c.definition)], standing)
        self.access.take(self.user, sum(len(w.rows) for s in scripts for w in s.writes))

    def require_own(self, definition: Definition) -> None:
        """For a change to what stands."""
        self.user.require_own(self.site.book.owner(definition.name), definition.name)

    def _check_internal(self, change: Change) -> None:
        """A node makes copies of what others have, and drops them again, on the way; what it keeps
        for others is not the users' affair."""
        name = change.definition.name
        if is_publication(name) or change.replaced is not None:
            self.user.require_own(None, name)

    def _check_room(self, changes: Iterable[Change], standing: Catalog) -> None:
        limits = self.user.limits
        queries = [c for c in changes if isinstance(c.definition, QueryDef)]
        if not queries or (limits.queries is None and limits.state_bytes is None):
            return
        have = self.site.book.queries_owned_by(self.name)
        state = held_by(self.site, have).size if limits.state_bytes is not None else 0
        for change in queries:
            name = change.definition.name
            if change.dropped:
                have.discard(name)
            elif name not in have and (change.replaced is None or standing.find(name) is None):
                self.user.require_room(len(have), state)
                have.add(name)


def require_own(site: Site, name: str) -> None:
    """For requests that are no scripts: the query or stream must be the user's, where there are
    users."""
    author, definition = author_now(), site.catalog.find(name)
    if isinstance(author, UserAuthor) and definition is not None:
        author.require_own(definition)


def take_rows(rows: int) -> None:
    """For rows that are about to be pushed."""
    author = author_now()
    if isinstance(author, UserAuthor):
        author.access.take(author.user, rows)


def _aimed_at(changes: Iterable[Change]) -> Iterable[Change]:
    """Those that change something by its name: not those of queries that go on, as they are
    written, on a view that is replaced."""
    has_view = False
    for change in changes:
        there = change.replaced
        has_same_text = isinstance(there, QueryDef | ViewDef) and change.text == there.text
        is_carried = has_view and has_same_text
        is_change = change.dropped or (there is not None and not is_carried)
        if is_change or isinstance(change.definition, SinkDef):
            yield change
        has_view = has_view or (there is not None and isinstance(change.definition, ViewDef))
