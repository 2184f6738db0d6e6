"""Which files of a watched folder have been taken, batch by batch.

A batch is written down before its files are read, and when all of them have been. So after a crash
the same files are read again, behind what has landed of them, and nobody asks for a file that was
read and may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from thalweg.engine.shared.state.connection import Connection


class Batch(NamedTuple):
    number: int
    files: list[tuple[str, int]]  # path, size


class Watched:
    def __init__(self, db: Connection) -> None:
        self._db = db

    def paths(self, stream: str) -> set[str]:
        """All files that were taken, or are in the batch that was begun."""
        rows = self._db.all("SELECT path FROM watched WHERE stream = ?", stream)
        return {path for (path,) in rows}

    def begin(self, stream: str, files: Iterable[tuple[str, int]]) -> Batch:
        """The next batch; the one before has ended."""
        listed = list(files)
        with self._db.transaction() as db:
            number = self._upto(stream) + 1
            db.executemany(
                "INSERT INTO watched VALUES (?, ?, ?, ?)",
                [(stream, path, size, number) for path, size in listed],
            )
        return Batch(number, listed)

    def end(self, stream: str, number: int) -> None:
        """All files of this batch have been read."""
        with self._db.transaction() as db:
            db.execute("INSERT OR REPLACE INTO watched_upto VALUES (?, ?)", (stream, number))

    def begun(self, stream: str) -> Batch | None:
        """A batch that was begun and has not ended."""
        sql = "SELECT batch, path, size FROM watched WHERE stream = ? AND batch > ?"
        rows = self._db.all(sql, stream, self._upto(stream))
        return Batch(rows[0][0], [(path, size) for _, path, size in rows]) if rows else None

    def adopt(self, stream: str, files: Iterable[tuple[str, int]], upto: int) -> None:
        """What is known from elsewhere: paths with the batches that they were in, of which those up
        to `upto` have ended."""
        with self._db.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO watched VALUES (?, ?, 0, ?)",
                [(stream, path, batch) for path, batch in files],
            )
            db.execute("INSERT OR REPLACE INTO watched_upto VALUES (?, ?)", (stream, upto))

    def _upto(self, stream: str) -> int:
        rows = self._db.all("SELECT batch FROM watched_upto WHERE stream = ?", stream)
        return int(rows[0][0]) if rows else -1
