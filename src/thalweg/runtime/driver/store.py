"""What the protocols of a node persist: `protocols.db`, a small SQLite file in its data folder.

A commit is durable when it returns. The file belongs to one address, since protocols write down
who they are, and to one process at a time. It also keeps how many lives the node has had, and how
far its clock had come at the last commit.

With a copy at another node (`BookLog`), a commit is durable when it is there, too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from thalweg.engine.shared.state.remote.book_log import BookLog
from thalweg.engine.shared.state.remote.objects import Objects
from thalweg.overlay.protocol import Address

FILE = "protocols.db"
FORMAT = 1

Write = tuple[str, str, bytes | None]  # protocol, key, value; None forgets the key

_TABLES = """
CREATE TABLE persisted (
    protocol TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (protocol, key)
) WITHOUT ROWID;
CREATE TABLE node (address TEXT NOT NULL, lives INTEGER NOT NULL, clock_us INTEGER NOT NULL);
"""


class StoreError(Exception):
    """Why a store can't be opened, and what to do."""


class Store:
    """Used from one thread at a time, any one."""

    def __init__(self, folder: Path, address: Address, copy: Objects | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self._log = None if copy is None else BookLog(copy, self.path)
        if self._log is not None:
            self._log.take_over()  # what is there counts
        self._db = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=0.2
        )
        try:
            self._open(address)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise StoreError(f"{self.path}: {_what_to_do(error)}") from error
        except BaseException:
            self._db.close()
            raise

    def _open(self, address: Address) -> None:
        # The lock is taken with the first transaction and held until the file is closed.
        self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        if self._log is not None:
            self._db.execute("PRAGMA wal_autocheckpoint=0")  # the copy is of the log
        self._db.execute("BEGIN IMMEDIATE")
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found == 0:
            for statement in filter(str.strip, _TABLES.split(";")):
                self._db.execute(statement)
            self._db.execute("INSERT INTO node VALUES (?, 0, 0)", (address,))
            self._db.execute(f"PRAGMA user_version={FORMAT}")
        elif found != FORMAT:
            raise StoreError(
                f"{self.path} has format {found}; this version of Thalweg reads format {FORMAT}"
            )
        owner, lives, clock_us = self._db.execute("SELECT * FROM node").fetchone()
        self.lives, self.clock_us = int(lives), int(clock_us)
        if owner != address:
            raise StoreError(
                f"{self.path} belongs to the node {owner}, not to {address}: start the node under "
                f"that address, or give the new one a folder of its own"
            )
        self._db.execute("COMMIT")
        self._ship()

    def _ship(self) -> None:
        if self._log is not None:
            self._log.ship(self._db)

    def stop(self) -> None:
        """Wait for the copy no longer."""
        if self._log is not None:
            self._log.stop()

    def load(self) -> dict[str, dict[str, bytes]]:
        """All that is persisted: protocol -> key -> value."""
        drawers: dict[str, dict[str, bytes]] = {}
        rows = self._db.execute("SELECT protocol, key, value FROM persisted ORDER BY protocol, key")
        for protocol, key, value in rows:
            drawers.setdefault(protocol, {})[key] = value
        return drawers

    def begin_life(self, clock_us: int) -> int:
        """A new life is counted before it does anything; gives its number."""
        self.commit([], clock_us, lives=self.lives + 1)
        return self.lives

    def commit(self, writes: Sequence[Write], clock_us: int, *, lives: int | None = None) -> None:
        """All of it, or (where it raises) nothing."""
        lives = self.lives if lives is None else lives
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for protocol, key, value in writes:
                if value is None:
                    self._db.execute(
                        "DELETE FROM persisted WHERE protocol = ? AND key = ?", (protocol, key)
                    )
                else:
                    self._db.execute(
                        "INSERT OR REPLACE INTO persisted VALUES (?, ?, ?)", (protocol, key, value)
                    )
            self._db.execute("UPDATE node SET lives = ?, clock_us = ?", (lives, clock_us))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._ship()
        self.lives, self.clock_us = lives, clock_us

    def close(self) -> None:
        self._db.close()


def _what_to_do(error: sqlite3.DatabaseError) -> str:
    if "locked" in str(error) or "busy" in str(error):
        return "another process uses this folder; stop it first, or choose another folder"
    if "not a database" in str(error) or "malformed" in str(error):
        return "the file is damaged; move it away to start as a node that knows nobody"
    return str(error)
