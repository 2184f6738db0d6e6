"""The data directory's book: everything that must survive a crash, in one SQLite file.

A tick is written down before it runs and committed in one transaction when its output is
delivered; segments and landed files exist only if the book lists them. So kill -9 at any point
leaves a state from which the same tick can be run again, with the same output.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.folder import Folder, put_all
from thalweg.engine.shared.state.hashing import HASHING
from thalweg.engine.shared.state.inputs import Inputs
from thalweg.engine.shared.state.kept_joins import KeptJoins
from thalweg.engine.shared.state.outputs import Outputs
from thalweg.engine.shared.state.remembered import Remembered
from thalweg.engine.shared.state.remote.appended import Appended
from thalweg.engine.shared.state.remote.book_log import BookLog
from thalweg.engine.shared.state.remote.objects import objects_at
from thalweg.engine.shared.state.runs import Runs
from thalweg.engine.shared.state.schema import CONTAINED, FORMAT, META, TABLES
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.versions import Versions
from thalweg.engine.shared.state.watched import Watched

BOOK = "book.sqlite"


class StoreError(RuntimeError):
    """A data directory that can't be opened, and why."""


class Store:
    """One SQLite connection, used by one thread at a time."""

    def __init__(self, folder: Path, *, durable: bool = True, objects: str = "") -> None:
        """With the URL of an object store the folder is a cache, and what is there counts."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.files = Folder(str(folder.resolve()), objects, durable=durable)
        self._log = _owned(objects, self.files) if objects else None
        self._lock = threading.RLock()
        self._frontiers = Remembered()
        self._db = sqlite3.connect(folder / BOOK, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        # What an object store has need not be on the disk, and each commit goes there by itself.
        self._db.execute(f"PRAGMA synchronous={'FULL' if durable and not objects else 'OFF'}")
        if objects:
            self._db.execute("PRAGMA wal_autocheckpoint=0")
        self._db.execute(META)
        self._check_format()  # first: what another format wrote may not bear this one's tables
        self._db.executescript(TABLES)
        self.runs = Runs(self)
        self.inputs = Inputs(self)
        self.watched = Watched(self)
        self.kept_joins = KeptJoins(self)
        self.outputs = Outputs(self)
        self.versions = Versions(self)
        self._appended = Appended(self, self.files) if objects else None
        if self._appended is not None:
            self._appended.restore()
            self._appended.adopt(self.inputs.side_files())
        self._ship()

    def _check_format(self) -> None:
        self._db.executemany(
            "UPDATE meta SET value = ? WHERE name = 'format' AND value = ?",
            [(str(FORMAT), str(number)) for number in CONTAINED],
        )
        for name, wanted in (("format", str(FORMAT)), ("hashing", HASHING)):
            self._db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, wanted))
            ((found,),) = self.all("SELECT value FROM meta WHERE name = ?", name)
            if found != wanted:
                self._db.close()
                raise StoreError(
                    f"{self.folder} was written with {name} {found}, this version has {wanted}: "
                    "try `thalweg upgrade`, open it with the version that wrote it, "
                    "or start with a new --data-dir"
                )

    def close(self) -> None:
        if self._log is not None:
            self._log.stop()
        with self._lock:
            self._db.close()

    def _ship(self) -> None:
        if self._log is not None:
            self._log.ship(self._db)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, durable when it returns. Transactions inside one another are one."""
        with self._lock:
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                for of in (self.outputs, self.runs, self.versions):
                    of.remembered.changed()
                self._frontiers.changed()
                raise
            self._db.execute("COMMIT")
            self._ship()

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def copy_to(self, path: Path) -> None:
        """A copy of the book as it is now, in one file."""
        with self._lock:
            self._db.execute("VACUUM INTO ?", (str(path),))

    def appended(self, file: str, start: int, content: bytes) -> None:
        """A file below the data directory has grown, and is on the disk; the caller holds the
        transaction that says so."""
        if self._appended is not None:
            self._appended.add(file, start, content)

    # --- ticks

    def tick(self) -> tuple[int, bytes | None]:
        """The number of the last tick, and its record if it has not been committed."""
        rows = self.all("SELECT number, record FROM tick")
        return (int(rows[0][0]), rows[0][1]) if rows else (0, None)

    def last_committed(self) -> int:
        number, record = self.tick()
        return number if record is None else number - 1

    def write_tick(self, number: int, record: bytes | None) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO tick VALUES (1, ?, ?)", (number, record))

    def frontiers(self) -> dict[str, int]:
        """How far each flow has come."""
        return dict(self._all_frontiers())

    def frontier(self, flow: str) -> int | None:
        return self._all_frontiers().get(flow)

    def _all_frontiers(self) -> Mapping[str, int]:
        return self._frontiers.get(
            "all", lambda: dict(self.all("SELECT flow, frontier FROM frontiers"))
        )

    def write_frontiers(self, frontiers: Mapping[str, int]) -> None:
        """Those of all flows; flows that are not among them have ended."""
        with self.transaction() as db:
            self._frontiers.changed()
            db.execute("DELETE FROM frontiers")
            db.executemany("INSERT INTO frontiers VALUES (?, ?)", frontiers.items())
            db.execute(
                "DELETE FROM tolerance_classes WHERE flow NOT IN (SELECT flow FROM frontiers)"
            )

    # --- segments

    def segments(self) -> list[Segment]:
        decode = msgspec.msgpack.Decoder(Segment).decode
        return [decode(packed) for (packed,) in self.all("SELECT packed FROM segments")]

    def change_segments(self, added: Iterable[Segment], removed: Iterable[tuple[str, int]]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        with self.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO segments VALUES (?, ?, ?)",
                [(s.bundle, s.offset, encode(s)) for s in added],
            )
            db.executemany("DELETE FROM segments WHERE bundle = ? AND start = ?", removed)

    # --- what was learnt

    def fanouts(self) -> dict[str, float]:
        """Of each probe, how many rows come out for each that goes in."""
        return dict(self.all("SELECT probe, fanout FROM fanouts"))

    def write_fanouts(self, fanouts: Mapping[str, float]) -> None:
        with self.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO fanouts VALUES (?, ?)", fanouts.items())

    # --- small values

    def next_number(self, what: str) -> int:
        """1, 2, 3, …, never the same again."""
        return self.take_numbers(what, 1)

    def take_numbers(self, what: str, count: int) -> int:
        """The first of so many numbers that nobody had before."""
        with self.transaction() as db:
            ((last,),) = db.execute(
                "INSERT INTO numbers VALUES (?, ?) ON CONFLICT (name) "
                "DO UPDATE SET value = value + excluded.value RETURNING value",
                (what, count),
            ).fetchall()
        return int(last) - count + 1

    def note(self, name: str) -> bytes | None:
        rows = self.all("SELECT value FROM notes WHERE name = ?", name)
        return rows[0][0] if rows else None

    def delete_note(self, name: str) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM notes WHERE name = ?", (name,))

    def write_note(self, name: str, value: bytes) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))


def _owned(url: str, files: Folder) -> BookLog:
    """Become the owner of what is in an object store; what is only here goes there."""
    try:
        log = BookLog(objects_at(url), Path(files.path) / BOOK)
        if not log.take_over():
            put_all(files)
    except Unavailable as error:
        raise StoreError(f"the object store does not answer: {error}") from None
    except ValueError as error:
        raise StoreError(f"{url} is not an object store: {error}") from None
    return log
