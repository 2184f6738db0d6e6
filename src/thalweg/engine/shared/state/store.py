"""The data directory's book: everything that must survive a crash, in one SQLite file.

A tick is written down before it runs and committed in one transaction when its output is
delivered; segments and landed files exist only if the book lists them. So kill -9 at any point
leaves a state from which the same tick can be run again, with the same output.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.state.hashing import HASHING
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.tick.task import BEGINNING
from thalweg.plan.catalog import StreamDef

FORMAT = "4"

_META = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS definitions (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, place INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS definitions_by_place ON definitions (place);
CREATE TABLE IF NOT EXISTS queries (
    name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, started INTEGER, horizons BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS generations (
    name TEXT PRIMARY KEY, packed BLOB NOT NULL, ended INTEGER);
CREATE TABLE IF NOT EXISTS homes (
    query TEXT NOT NULL, since INTEGER NOT NULL, generation TEXT NOT NULL,
    PRIMARY KEY (query, since)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitions (
    stream TEXT NOT NULL, partition INTEGER NOT NULL,
    newest INTEGER NOT NULL, cut INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (stream, partition));
CREATE TABLE IF NOT EXISTS batches (
    stream TEXT NOT NULL, batch TEXT NOT NULL, partition INTEGER NOT NULL,
    landed INTEGER NOT NULL, newest INTEGER NOT NULL, PRIMARY KEY (stream, batch)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batches_by_age ON batches (stream, partition, landed);
CREATE TABLE IF NOT EXISTS landed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, file TEXT, rows INTEGER NOT NULL,
    partition INTEGER NOT NULL, newest INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS floors (
    stream TEXT PRIMARY KEY, complete_from INTEGER NOT NULL, late_below INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS kept_columns (
    stream TEXT NOT NULL, place INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (stream, place));
CREATE TABLE IF NOT EXISTS stems (
    stream TEXT NOT NULL, place INTEGER NOT NULL, keys BLOB NOT NULL, PRIMARY KEY (stream, place));
CREATE TABLE IF NOT EXISTS segments (
    bundle TEXT NOT NULL, start INTEGER NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (bundle, start)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    tick INTEGER NOT NULL, bundle TEXT NOT NULL, start INTEGER NOT NULL, query TEXT NOT NULL,
    packed BLOB NOT NULL, PRIMARY KEY (tick, bundle, start)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS results_by_query ON results (query, tick);
CREATE TABLE IF NOT EXISTS frontiers (flow TEXT PRIMARY KEY, frontier INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fanouts (
    probe TEXT PRIMARY KEY, fanout REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tick (
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, record BLOB);
CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


_LISTED = "(SELECT value FROM json_each(?))"  # any number of names in one parameter


def _listed(names: Iterable[str]) -> str:
    return msgspec.json.encode(list(names)).decode()


class StoreError(RuntimeError):
    """A data directory that can't be opened, and why."""


class Store:
    """One SQLite connection, used by one thread at a time."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            folder / "book.sqlite", check_same_thread=False, isolation_level=None
        )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        self._db.execute(_META)
        self._check_format()  # first: what another format wrote may not bear this one's tables
        self._db.executescript(_SCHEMA)

    def _check_format(self) -> None:
        for name, wanted in (("format", FORMAT), ("hashing", HASHING)):
            self._db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, wanted))
            (found,) = self._one("SELECT value FROM meta WHERE name = ?", name)
            if found != wanted:
                raise StoreError(
                    f"{self.folder} was written with {name} {found}, this is {wanted}: "
                    "open it with the version that wrote it, or start with a new --data-dir"
                )

    def close(self) -> None:
        with self._lock:
            self._db.close()

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
                raise
            self._db.execute("COMMIT")

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: Any) -> tuple[Any, ...]:
        found = self._db.execute(sql, values).fetchone()
        assert found is not None
        return tuple(found)

    # --- queries

    def queries(self, names: Iterable[str]) -> dict[str, tuple[int, int | None, dict[str, int]]]:
        """When those that are known began: epoch, start, horizons."""
        sql = f"SELECT name, epoch, started, horizons FROM queries WHERE name IN {_LISTED}"
        decode = msgspec.msgpack.Decoder(dict[str, int]).decode
        rows = self.all(sql, _listed(names))
        return {name: (epoch, started, decode(h)) for name, epoch, started, h in rows}

    def write_queries(self, queries: Iterable[tuple[str, int, int | None, dict[str, int]]]) -> None:
        with self.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO queries VALUES (?, ?, ?, ?)",
                [(n, e, s, msgspec.msgpack.encode(h)) for n, e, s, h in queries],
            )

    def delete_query(self, name: str) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM queries WHERE name = ?", (name,))
            db.execute("DELETE FROM homes WHERE query = ?", (name,))
            db.execute("DELETE FROM results WHERE query = ?", (name,))

    def complete_from(self, stream: str, columns: Iterable[int]) -> int:
        """The instant from which all the stream's tuples are at hand, in all these columns."""
        rows = self.all("SELECT complete_from FROM floors WHERE stream = ?", stream)
        floor = int(rows[0][0]) if rows else BEGINNING
        since = self.kept_columns(stream)
        unkept = self.unseen_from(stream)
        return max([floor, *(since.get(c, unkept) for c in columns)])

    def kept_columns(self, stream: str) -> dict[int, int]:
        """The columns that are kept, and since when."""
        return dict(self.all("SELECT place, since FROM kept_columns WHERE stream = ?", stream))

    def is_whole(self, stream: StreamDef) -> bool:
        """Whether what is stored of a stream has all its columns."""
        if self.unseen_from(stream.name) == BEGINNING:
            return True
        return len(self.kept_columns(stream.name)) == len(stream.fields)

    def unseen_from(self, stream: str) -> int:
        """From here on no tuple has been in a tick yet, nor is it in one that was interrupted."""
        field = "cut" if self.tick()[1] is None else "newest"
        ((newest,),) = self.all(f"SELECT max({field}) FROM partitions WHERE stream = ?", stream)
        if newest is None or newest <= BEGINNING:
            return BEGINNING
        return min(int(newest) + 1, FOREVER)

    # --- groups

    def homes(self, queries: Iterable[str]) -> dict[str, str]:
        """The generations in which they live now; those that run alone are left out."""
        # With one max(), SQLite gives the other columns of the row that has it.
        sql = (
            "SELECT query, generation, max(since) FROM homes "
            f"WHERE query IN {_LISTED} GROUP BY query"
        )
        return {query: generation for query, generation, _ in self.all(sql, _listed(queries))}

    def homes_of(self, query: str) -> list[tuple[int, str]]:
        """Where a query has lived: the first tick, and the generation."""
        sql = "SELECT since, generation FROM homes WHERE query = ? ORDER BY since"
        return [(int(since), generation) for since, generation in self.all(sql, query)]

    def write_homes(self, moved: Iterable[tuple[str, int, str]]) -> None:
        with self.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO homes VALUES (?, ?, ?)", moved)

    def generations(self) -> list[bytes]:
        """Those that run."""
        return [row[0] for row in self.all("SELECT packed FROM generations WHERE ended IS NULL")]

    def generation(self, name: str) -> bytes | None:
        rows = self.all("SELECT packed FROM generations WHERE name = ?", name)
        return rows[0][0] if rows else None

    def write_generation(self, name: str, packed: bytes) -> None:
        with self.transaction() as db:
            db.execute("INSERT INTO generations VALUES (?, ?, NULL)", (name, packed))

    def end_generation(self, name: str, tick: int) -> None:
        with self.transaction() as db:
            db.execute("UPDATE generations SET ended = ? WHERE name = ?", (tick, name))

    def forget_generations(self, upto: int) -> None:
        """Those whose last results are gone."""
        with self.transaction() as db:
            db.execute("DELETE FROM generations WHERE ended <= ?", (upto,))

    # --- segments and results

    def segments(self, table: str) -> list[Segment]:
        decode = msgspec.msgpack.Decoder(Segment).decode
        return [decode(row[0]) for row in self.all(f"SELECT packed FROM {table}")]

    def change_segments(
        self, table: str, added: list[Segment], removed: list[tuple[str, int]]
    ) -> None:
        encode = msgspec.msgpack.Encoder().encode
        with self.transaction() as db:
            db.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)",
                [(s.bundle, s.offset, encode(s)) for s in added],
            )
            db.executemany(f"DELETE FROM {table} WHERE bundle = ? AND start = ?", removed)

    def add_results(self, tick: int, segments: list[Segment]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        with self.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)",
                [(tick, s.bundle, s.offset, s.table, encode(s)) for s in segments],
            )

    def results(self, query: str, after: int) -> list[tuple[int, Segment]]:
        sql = "SELECT tick, packed FROM results WHERE query = ? AND tick > ? ORDER BY tick"
        decode = msgspec.msgpack.Decoder(Segment).decode
        return [(tick, decode(packed)) for tick, packed in self.all(sql, query, after)]

    def drop_results(self, upto: int) -> None:
        with self.transaction() as db:
            db.execute("DELETE FROM results WHERE tick <= ?", (upto,))

    def result_bundles(self) -> set[str]:
        return {row[0] for row in self.all("SELECT DISTINCT bundle FROM results")}

    # --- ticks

    def tick(self) -> tuple[int, bytes | None]:
        """The number of the last tick, and its record if it has not been committed."""
        rows = self.all("SELECT number, record FROM tick")
        return (int(rows[0][0]), rows[0][1]) if rows else (0, None)

    def write_tick(self, number: int, record: bytes | None) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO tick VALUES (1, ?, ?)", (number, record))

    # --- small values

    def progress(self, name: str) -> bytes | None:
        rows = self.all("SELECT value FROM progress WHERE name = ?", name)
        return rows[0][0] if rows else None

    def write_progress(self, name: str, value: bytes) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (name, value))

    def count(self, name: str, by: int) -> None:
        if by:
            with self.transaction() as db:
                db.execute(
                    "INSERT INTO counters VALUES (?, ?) "
                    "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                    (name, by),
                )

    def next_number(self, what: str) -> int:
        """1, 2, 3, …, never the same again."""
        self.count(f"numbered/{what}", 1)
        return self.counters(f"numbered/{what}")[f"numbered/{what}"]

    def counters(self, prefix: str = "") -> dict[str, int]:
        rows = self.all("SELECT name, value FROM counters WHERE name LIKE ?", prefix + "%")
        return {str(name): int(value) for name, value in rows}
