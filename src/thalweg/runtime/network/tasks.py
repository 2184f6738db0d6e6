"""What this node's placed queries were given: written down beside them, and so are refusals."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from thalweg.engine.site import Site
from thalweg.plan.catalog import QueryDef
from thalweg.runtime.network.measuring import Task

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

    # --- what was not admitted

    def refuse(self, refused: Refused) -> None:
        kept = [*self.refusals(), refused][-_MOST_REFUSALS:]
        self._site.engine.store.write_note(_REFUSALS, msgspec.msgpack.encode(kept))

    def refusals(self) -> list[Refused]:
        note = self._site.engine.store.note(_REFUSALS)
        return [] if note is None else msgspec.msgpack.decode(note, type=list[Refused])


def is_placed(query: QueryDef) -> bool:
    return " PLACED '" in query.text


def _note(query: str) -> str:
    return f"placed/{query}"
