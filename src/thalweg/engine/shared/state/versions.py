"""The book about versions: what a query was before it was replaced, and how far that had come.

All versions of a query are one lineage, named by the creation number of the first. What an old
version has said stays readable while its ticks are retained; an end mark stands behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from thalweg.engine.shared.state.connection import LISTED, Connection, listed
from thalweg.engine.shared.state.remembered import Remembered
from thalweg.plan.windows import BEGINNING


class Ended(msgspec.Struct, frozen=True):
    """A version that ended at an instant: all before it was said by this version.

    `content` are the rows that it held then (Arrow, with weights in `_w`): taken back by the
    version itself (`closes`), or left to its successor, which says only what is different.
    """

    run: int
    version: int
    instant: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    first_tick: int
    last_tick: int
    base: int  # see `Lineage`
    flows: tuple[tuple[int, str], ...]  # from which tick on, which flow
    closes: bool = False
    content: bytes | None = None


class Lineage(msgspec.Struct, frozen=True):
    """The version that stands. From the tick `base` on its changes add up to what it holds, on top
    of what it has taken over (`results.contents`); `pending`: it has not spoken yet."""

    origin: int
    version: int
    since: int
    base: int
    pending: bool


class Versions:
    def __init__(self, db: Connection) -> None:
        self._db = db
        self.remembered = Remembered()

    def lineage(self, query: str) -> Lineage | None:
        """None for a query that was never replaced."""
        return self.remembered.get(("lineage", query), lambda: self.lineages([query]).get(query))

    def lineages(self, queries: Iterable[str]) -> dict[str, Lineage]:
        sql = f"SELECT query, packed FROM lineages WHERE query IN {LISTED}"
        decode = msgspec.msgpack.Decoder(Lineage).decode
        return {query: decode(packed) for query, packed in self._db.all(sql, listed(queries))}

    def all(self) -> dict[str, Lineage]:
        """Of all queries that were ever replaced."""
        decode = msgspec.msgpack.Decoder(Lineage).decode
        rows = self._db.all("SELECT query, packed FROM lineages")
        return {query: decode(packed) for query, packed in rows}

    def ended(self, query: str) -> list[Ended]:
        """Those whose results are still retained, oldest first."""
        return self.remembered.get(("ended", query), lambda: self._ended(query))

    def _ended(self, query: str) -> list[Ended]:
        sql = "SELECT packed FROM ended_versions WHERE query = ? ORDER BY run"
        decode = msgspec.msgpack.Decoder(Ended).decode
        return [decode(packed) for (packed,) in self._db.all(sql, query)]

    def end(self, query: str, ended: Ended, successor: Lineage) -> None:
        with self._db.transaction() as db:
            self.remembered.changed()
            packed = msgspec.msgpack.encode(ended)
            db.execute(
                "INSERT OR REPLACE INTO ended_versions VALUES (?, ?, ?, ?)",
                (query, ended.run, ended.last_tick, packed),
            )
            self._write(query, successor)

    def begun(self, queries: Iterable[str]) -> None:
        """They have spoken: what their predecessors left to them is used up."""
        for query, lineage in self.lineages(queries).items():
            self._write(query, msgspec.structs.replace(lineage, pending=False))
            for ended in self.ended(query):
                if ended.content is not None and not ended.closes:
                    packed = msgspec.msgpack.encode(msgspec.structs.replace(ended, content=None))
                    with self._db.transaction() as db:
                        self.remembered.changed()
                        db.execute(
                            "UPDATE ended_versions SET packed = ? WHERE query = ? AND run = ?",
                            (packed, query, ended.run),
                        )

    def expire(self, upto: int) -> None:
        """Versions whose last tick is not retained any more, and whose successors have spoken."""
        rows = self._db.all("SELECT query FROM ended_versions WHERE last_tick <= ?", upto)
        queries = {query for (query,) in rows}
        waiting = {q for q, lineage in self.lineages(queries).items() if lineage.pending}
        with self._db.transaction() as db:
            if rows:
                self.remembered.changed()
            db.executemany(
                "DELETE FROM ended_versions WHERE query = ? AND last_tick <= ?",
                [(query, upto) for query in sorted(queries - waiting)],
            )

    def delete(self, query: str) -> None:
        with self._db.transaction() as db:
            self.remembered.changed()
            db.execute("DELETE FROM lineages WHERE query = ?", (query,))
            db.execute("DELETE FROM ended_versions WHERE query = ?", (query,))

    def _write(self, query: str, lineage: Lineage) -> None:
        with self._db.transaction() as db:
            self.remembered.changed()
            packed = msgspec.msgpack.encode(lineage)
            db.execute("INSERT OR REPLACE INTO lineages VALUES (?, ?)", (query, packed))


def first(run: int, epoch: int) -> Lineage:
    """Of a query that was never replaced."""
    return Lineage(run, 1, BEGINNING, epoch, pending=False)
