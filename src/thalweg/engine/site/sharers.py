"""Several readers of one publication: each has a name of its own, and what it began with.

A reader that comes later begins with what the publication's result holds then, and goes on with
what it says from there on. So one query serves them all, for as long as one of them is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import msgspec
import polars as pl

from thalweg.engine.shared.frames import OP, TS, name
from thalweg.engine.shared.state.store import Store
from thalweg.plan.windows import BEGINNING

_NOTE, _CONTENT = "sharers", "sharer/"


class Sharer(msgspec.Struct, frozen=True):
    """Reads the publication `of`, from instant `first` on; None: from its beginning, or from
    `since` on, if it goes on with what it has read elsewhere."""

    of: str
    first: int | None = None
    since: int = BEGINNING


class Sharers:
    """By the names of readers, the first one's included. Durable, and at hand: readers ask for it
    each time that they read, and a thousand of them do not wait for the book. One at a time may
    change it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        note = store.note(_NOTE)
        known = {} if note is None else msgspec.msgpack.decode(note, type=dict[str, Sharer])
        self._known: Mapping[str, Sharer] = known  # never changed, only replaced

    def all(self) -> Mapping[str, Sharer]:
        return self._known

    def find(self, reader: str) -> Sharer:
        """Who has never shared anything reads what has its own name."""
        return self._known.get(reader, Sharer(reader))

    def add(self, reader: str, of: str, first: int | None, content: pl.DataFrame | None) -> None:
        """`content` is what the publication holds at `first`."""
        found = {of: Sharer(of), **self._known, reader: Sharer(of, first)}
        with self._store.transaction():
            if content is not None:
                packed = content.write_ipc(None).getvalue()
                self._store.write_note(_CONTENT + reader, packed)
            self._write(found)
        self._known = found

    def go_on(self, reader: str, of: str, since: int) -> None:
        """A reader that has all from before an instant, and wants what follows."""
        found = {of: Sharer(of), **self._known, reader: Sharer(of, None, since)}
        self._write(found)
        self._known = found

    def remove(self, reader: str) -> str | None:
        """The publication that nobody reads any more, if that is so."""
        found = dict(self._known)
        of = found.pop(reader, Sharer(reader)).of
        with self._store.transaction():
            self._store.delete_note(_CONTENT + reader)
            self._write(found)
        self._known = found
        return None if any(s.of == of for s in found.values()) else of

    def of(self, publication: str) -> list[str]:
        """All who read it, in order."""
        found = sorted(r for r, s in self._known.items() if s.of == publication)
        return found or [publication]

    def content(self, reader: str, columns: list[str]) -> pl.DataFrame:
        """What a reader began with, as changes."""
        packed = self._store.note(_CONTENT + reader)
        first = self.find(reader).first
        assert packed is not None
        assert first is not None
        rows = pl.read_ipc(BytesIO(packed))
        rows = rows.rename({name(i): c for i, c in enumerate(columns)})
        stamp = pl.lit(first, pl.Int64).alias(TS), pl.lit(1, pl.Int8).alias(OP)
        return rows.select(*stamp, *columns)

    def _write(self, found: dict[str, Sharer]) -> None:
        if found:
            self._store.write_note(_NOTE, msgspec.msgpack.encode(found))
        else:
            self._store.delete_note(_NOTE)
