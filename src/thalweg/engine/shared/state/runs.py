"""The book about what runs: when queries began, groups, and who is a member of which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from thalweg.engine.shared.state.connection import LISTED, Connection, listed
from thalweg.engine.shared.state.names import PUBLISHED
from thalweg.engine.shared.state.remembered import Remembered

PLANS = "lasting plans before"  # among the book's numbers


class Begun(msgspec.Struct, frozen=True):
    """When a query began: its creation number, its epoch, the instant from which its result counts,
    and where its inputs begin."""

    run: int
    epoch: int
    started: int | None
    horizons: dict[str, int]


class ClassStart(NamedTuple):
    """A tolerance class that a query has joined: it counts tuples from `horizon` on, and the query
    has begun with what it held at `since`."""

    horizon: int
    since: int


_HORIZONS = msgspec.msgpack.Decoder(dict[str, int])


class Runs:
    def __init__(self, db: Connection) -> None:
        self._db = db
        self.remembered = Remembered()  # of memberships

    # --- queries

    def begun(self, names: Iterable[str]) -> dict[str, Begun]:
        """When those that are known began."""
        sql = f"SELECT name, run, epoch, started, horizons FROM queries WHERE name IN {LISTED}"
        return {
            name: Begun(run, epoch, started, _HORIZONS.decode(horizons))
            for name, run, epoch, started, horizons in self._db.all(sql, listed(names))
        }

    def begin(self, queries: Iterable[tuple[str, Begun]]) -> None:
        encode = msgspec.msgpack.encode
        with self._db.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO queries VALUES (?, ?, ?, ?, ?)",
                [(n, b.run, b.epoch, b.started, encode(b.horizons)) for n, b in queries],
            )

    def lasting_before(self, epoch: int) -> int:
        """Queries of earlier epochs keep the plans with which they began: their state is named
        after its operators. In a data directory that has queries but not this number, these are
        all that began before the present `epoch`."""
        with self._db.transaction() as db:
            has_queries = db.execute("SELECT 1 FROM queries LIMIT 1").fetchone() is not None
            db.execute(
                "INSERT OR IGNORE INTO numbers VALUES (?, ?)", (PLANS, epoch if has_queries else 0)
            )
            ((found,),) = db.execute("SELECT value FROM numbers WHERE name = ?", (PLANS,))
        return int(found)

    def delete(self, query: str) -> None:
        with self._db.transaction() as db:
            self.remembered.changed()
            db.execute("DELETE FROM queries WHERE name = ?", (query,))
            db.execute("DELETE FROM memberships WHERE query = ?", (query,))

    # --- tolerance classes

    def join_class(self, flow: str, class_: str, start: ClassStart) -> None:
        with self._db.transaction() as db:
            row = (flow, class_, start.horizon, start.since)
            db.execute("INSERT OR REPLACE INTO tolerance_classes VALUES (?, ?, ?, ?)", row)

    def class_starts(self, flow: str) -> dict[str, ClassStart]:
        """Of the classes that a flow's queries have joined."""
        sql = "SELECT class, horizon, since FROM tolerance_classes WHERE flow = ?"
        return {name: ClassStart(*start) for name, *start in self._db.all(sql, flow)}

    # --- groups

    def groups(self) -> list[bytes]:
        """Those that run."""
        sql = "SELECT packed FROM running_groups WHERE ended IS NULL"
        return [packed for (packed,) in self._db.all(sql)]

    def group(self, name: str) -> bytes | None:
        """One that runs, or has run while its results are retained."""
        rows = self._db.all("SELECT packed FROM running_groups WHERE name = ?", name)
        return rows[0][0] if rows else None

    def begin_group(self, name: str, packed: bytes) -> None:
        with self._db.transaction() as db:
            db.execute("INSERT INTO running_groups VALUES (?, ?, NULL)", (name, packed))

    def end_group(self, name: str, tick: int) -> None:
        with self._db.transaction() as db:
            db.execute("UPDATE running_groups SET ended = ? WHERE name = ?", (tick, name))

    def forget_groups(self, upto: int) -> None:
        """Those whose last results are gone."""
        with self._db.transaction() as db:
            db.execute("DELETE FROM running_groups WHERE ended <= ?", (upto,))

    # --- who is a member of which

    def groups_of(self, queries: Iterable[str]) -> dict[str, str]:
        """The groups that answer them now; those that run alone are left out."""
        # With one max(), SQLite gives the other columns of the row that has it.
        sql = (
            "SELECT query, group_name, max(since) FROM memberships "
            f"WHERE query IN {LISTED} GROUP BY query"
        )
        return {query: group for query, group, _ in self._db.all(sql, listed(queries))}

    def memberships(self, query: str) -> list[tuple[int, str]]:
        """By which groups a query was answered: from which tick on, and the group."""
        return self.remembered.get(query, lambda: self._memberships(query))

    def _memberships(self, query: str) -> list[tuple[int, str]]:
        sql = "SELECT since, group_name FROM memberships WHERE query = ? ORDER BY since"
        return [(int(since), group) for since, group in self._db.all(sql, query)]

    def published_members(self, group: str, tick: int) -> list[str]:
        """Those of a group in a tick, or in a later one, that other nodes read."""
        # Names that begin with it are one range of the key.
        sql = (
            "SELECT DISTINCT query FROM memberships WHERE query >= ? AND query < ? "
            "AND group_name = ? AND since <= ? ORDER BY query"
        )
        beyond = PUBLISHED[:-1] + chr(ord(PUBLISHED[-1]) + 1)
        return [query for (query,) in self._db.all(sql, PUBLISHED, beyond, group, tick)]

    def all_memberships(self) -> list[tuple[str, int, int | None, str]]:
        """(query, the first tick, the first tick in another group, group)"""
        sql = (
            "SELECT query, since, lead(since) OVER (PARTITION BY query ORDER BY since), group_name "
            "FROM memberships"
        )
        return [(q, int(since), until, group) for q, since, until, group in self._db.all(sql)]

    def join(self, memberships: Iterable[tuple[str, int, str]]) -> None:
        """(query, the first tick, group)"""
        with self._db.transaction() as db:
            self.remembered.changed()
            db.executemany("INSERT OR REPLACE INTO memberships VALUES (?, ?, ?)", memberships)
