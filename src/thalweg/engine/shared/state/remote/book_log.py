"""The book in an object store: a snapshot, and what each transaction has changed since.

The log is one sequence of objects, `log/1`, `log/2`, …; each is created once, so whoever creates
number n has decided what stands there. A transaction counts when its entry is there. To take over,
a new owner creates the next entry in its own name: what the old owner writes from then on finds its
number taken, and nothing of it counts (the old owner is *fenced*). No clocks, no leases.

An entry holds bytes of SQLite's write-ahead log. Snapshot and entries put one after the other are
the book as it was.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.remote.objects import Objects, Taken
from thalweg.engine.shared.state.remote.wal import committed_since

log = logging.getLogger(__name__)

LOG, _SNAPSHOTS = "log/", "book/"
_SNAPSHOT_BYTES = 16 << 20  # of log, before it is replaced by a snapshot
_RETRY_S = 1.0


class Fenced(RuntimeError):
    """Another process has taken over this data directory."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`snapshot` names the book that the entries behind this one continue; `frames` are bytes of
    the write-ahead log. One with neither only says who the owner is."""

    owner: str
    snapshot: str = ""
    frames: bytes = b""


class BookLog:
    """The owner's side. Nobody else writes, and the owner finds out if that is no longer so."""

    def __init__(self, objects: Objects, book: Path) -> None:
        self._objects = objects
        self._book, self._wal = book, book.with_name(book.name + "-wal")
        self._owner = uuid.uuid4().hex
        self._number = 0  # of the last entry
        self._offset = 0  # in the write-ahead log, up to which entries reach
        self._stopping = threading.Event()
        self._is_fenced = False

    # --- beginning

    def take_over(self) -> bool:
        """Become the owner, and bring the book here as it is in the store; whether there was one.
        Raises Unavailable."""
        while keys := self._objects.keys(LOG):
            self._number = _number_of(keys[-1])
            try:
                self._create(Entry(self._owner))
            except Fenced:
                self._is_fenced = False
                continue  # somebody wrote one more: it counts
            self._restore(keys)
            return True
        return False

    def _restore(self, keys: list[str]) -> None:
        # From the end back to the snapshot: the old owner may still be deleting what is before it.
        snapshot, pieces = "", []
        for key in reversed(keys):
            entry = msgspec.msgpack.decode(self._objects.get(key), type=Entry)
            pieces.append(entry.frames)
            if entry.snapshot:
                snapshot = entry.snapshot
                break
        frames = b"".join(reversed(pieces))
        for path in (self._wal, self._book.with_name(self._book.name + "-shm")):
            path.unlink(missing_ok=True)
        self._book.write_bytes(self._objects.get(snapshot))
        if frames:
            self._wal.write_bytes(frames)
        self._offset = len(frames)

    # --- going on

    def ship(self, db: sqlite3.Connection) -> None:
        """Make what was committed last durable, or wait until it can be. Raises Fenced."""
        if self._is_fenced:
            raise Fenced(f"another process has taken over {self._objects.url}")
        frames = committed_since(self._wal, self._offset)
        if not self._number or self._offset + len(frames) > _SNAPSHOT_BYTES:
            self._snapshot(db)
        elif frames:
            self._create(Entry(self._owner, frames=frames))
            self._offset += len(frames)

    def _snapshot(self, db: sqlite3.Connection) -> None:
        """Replace the log by the book itself; what is in both is there twice for a moment."""
        ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert not busy, "nobody else reads the book"
        older = [*self._objects.keys(LOG), *self._objects.keys(_SNAPSHOTS)]
        name = f"{_SNAPSHOTS}{uuid.uuid4().hex}"
        self._patiently(lambda: self._objects.put(name, self._book.read_bytes()))
        self._create(Entry(self._owner, snapshot=name))
        self._offset = 0
        self._objects.delete(older)

    def _create(self, entry: Entry) -> None:
        packed = msgspec.msgpack.encode(entry)
        key = f"{LOG}{self._number + 1:012d}"
        try:
            self._patiently(lambda: self._objects.create(key, packed))
        except Taken as error:
            self._is_fenced = True
            raise Fenced(f"another process has taken over {self._objects.url}") from error
        self._number += 1

    def _patiently(self, request: Callable[[], None]) -> None:
        while True:
            try:
                request()
                return
            except Unavailable as error:
                # What is committed here and not there must neither be told nor forgotten.
                log.warning("waiting for the object store: %s", error)
                if self._stopping.wait(_RETRY_S):
                    raise

    def stop(self) -> None:
        """Wait for the store no longer. What it has not got does not count."""
        self._stopping.set()


def _number_of(key: str) -> int:
    return int(key.rpartition("/")[2])
