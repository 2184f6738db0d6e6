"""What this node's placed queries were given: written down beside them, and so are refusals."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import xxhash

from thalweg.engine.site import Site
from thalweg.plan.catalog import QueryDef
from thalweg.runtime.data.fragments import Fragment, is_fragment
from thalweg.runtime.network.directory import QUERY, Directory
from thalweg.runtime.network.fragments.publishing import note_of
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.moves.moved import Moved, given_note

_REFUSALS = "refusals"
_MOST_REFUSALS = 100


class Refused(msgspec.Struct, frozen=True):
    """A script that a strategy did not admit."""

    at: str  # the time, for people
    strategy: str
    reason: str


class Tasks:
    def __init__(self, site: Site) -> None:
        self._site = site

    def write(self, task: Task) -> None:
        self._site.engine.store.write_note(_note(task.query), msgspec.msgpack.encode(task))

    def delete(self, query: str) -> None:
        self._site.engine.store.delete_note(_note(query))

    def of(self, query: str) -> Task | None:
        note = self._site.engine.store.note(_note(query))
        return None if note is None else msgspec.msgpack.decode(note, type=Task)

    def all(self) -> Iterator[Task]:
        for query in self._site.catalog.queries():
            if is_placed(query) and (task := self.of(query.name)) is not None:
                yield task

    def given(self, query: str) -> Fragment | None:
        """What a placed query of this node, or a fragment that it computes for another, is to read
        of whom: as it was planned, but for what has moved since. None: it was not written down."""
        if not is_fragment(query):
            task = self.of(query)
            return None if task is None else task.fragment
        store = self._site.engine.store
        note = store.note(given_note(query)) or store.note(note_of(query))
        return None if note is None else msgspec.msgpack.decode(note, type=Fragment)

    def fragment_moved(self, moved: Moved) -> None:
        """What queries and fragments of this node were given follows what they read."""
        for query in self._site.catalog.queries():
            given = self.given(query.name) if is_placed(query) else None
            if given is not None and (changed := moved.applied(given)) != given:
                self._give(query.name, changed)

    def _give(self, query: str, given: Fragment) -> None:
        task = self.of(query)
        if task is not None:
            self.write(msgspec.structs.replace(task, fragment=given))
        else:
            note = msgspec.msgpack.encode(given)
            self._site.engine.store.write_note(given_note(query), note)

    # --- what was not admitted

    def refuse(self, refused: Refused) -> None:
        kept = [*self.refusals(), refused][-_MOST_REFUSALS:]
        self._site.engine.store.write_note(_REFUSALS, msgspec.msgpack.encode(kept))

    def refusals(self) -> list[Refused]:
        note = self._site.engine.store.note(_REFUSALS)
        return [] if note is None else msgspec.msgpack.decode(note, type=list[Refused])


def room_version(directory: Directory) -> str:
    """Differs when nodes or queries have come or gone, so that there may be room where there was
    none."""
    nodes = sorted(n.name for n in directory.nodes() if directory.is_up(n.name))
    queries = sorted(d.name for d in directory.defined().values() if d.kind == QUERY)
    return xxhash.xxh64_hexdigest(msgspec.json.encode([nodes, queries]))


def is_placed(query: QueryDef) -> bool:
    return " PLACED '" in query.text


def _note(query: str) -> str:
    return f"placed/{query}"
