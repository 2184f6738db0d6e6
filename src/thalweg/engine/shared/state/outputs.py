"""The book about what was said: results that are retained, and how far sinks have come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

import msgspec

from thalweg.engine.shared.state.connection import Connection
from thalweg.engine.shared.state.names import Table, content_table, result_table
from thalweg.engine.shared.state.remembered import Remembered
from thalweg.engine.shared.state.segments import Segment, file_of, is_beside
from thalweg.plan.windows import BEGINNING

Ranges = dict[str, tuple[int, int]]  # flow -> the instants [from, upto) of a tick

EVERY_QUERY = ""  # in place of a query's name: a sink that takes all of them


_segment = msgspec.msgpack.Decoder(Segment).decode


class Outputs:
    def __init__(self, db: Connection) -> None:
        self._db = db
        self.remembered = Remembered()

    # --- results

    def add(self, tick: int, ranges: Ranges, segments: Iterable[Segment]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        with self._db.transaction() as db:
            self.remembered.changed()
            db.execute("INSERT OR REPLACE INTO retained VALUES (?, ?)", (tick, encode(ranges)))
            db.executemany(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)",
                [(tick, s.bundle, s.offset, s.table, encode(s)) for s in segments],
            )

    def add_segment(self, tick: int, segment: Segment) -> None:
        """Of a tick that is retained."""
        with self._db.transaction() as db:
            self.remembered.changed()
            packed = msgspec.msgpack.encode(segment)
            row = (tick, segment.bundle, segment.offset, segment.table, packed)
            db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", row)

    def expire(self, upto: int) -> None:
        """Ticks up to this one are not retained any more."""
        with self._db.transaction() as db:
            self.remembered.changed()
            db.execute("DELETE FROM results WHERE tick <= ?", (upto,))
            db.execute("DELETE FROM retained WHERE tick <= ?", (upto,))

    def segments(
        self, table: Table, after: int = 0, since: int = BEGINNING
    ) -> list[tuple[int, Segment]]:
        """By tick, those behind a tick, and that reach beyond an instant."""
        question = ("segments", table, after, since)
        return self.remembered.get(question, lambda: self._segments(table, after, since))

    def _segments(self, table: Table, after: int, since: int) -> list[tuple[int, Segment]]:
        if since > BEGINNING:
            after = max(after, self._last_before(table, after, since))
        sql = "SELECT tick, packed FROM results WHERE name = ? AND tick > ? ORDER BY tick"
        return [(tick, _segment(packed)) for tick, packed in self._db.all(sql, table, after)]

    def _last_before(self, table: Table, after: int, since: int) -> int:
        """The last tick that does not reach beyond an instant. Who asks has mostly read up to the
        newest ticks, so they are looked at from there."""
        sql = (
            "SELECT tick, packed FROM results WHERE name = ? AND tick > ? "
            "ORDER BY tick DESC LIMIT ? OFFSET ?"
        )
        seen, limit = 0, 8
        while rows := self._db.all(sql, table, after, limit, seen):
            for tick, packed in rows:
                if _segment(packed).high <= since:
                    return int(tick)
            seen, limit = seen + len(rows), 2 * limit
        return after

    def oldest(self) -> tuple[int, Ranges] | None:
        """The first tick that is retained, and the instants that it was about."""
        return self.remembered.get("oldest", self._oldest)

    def _oldest(self) -> tuple[int, Ranges] | None:
        rows = self._db.all("SELECT tick, ranges FROM retained ORDER BY tick LIMIT 1")
        return (rows[0][0], msgspec.msgpack.decode(rows[0][1], type=Ranges)) if rows else None

    def oldest_tick(self) -> int | None:
        ((tick,),) = self._db.all("SELECT min(tick) FROM retained")
        return None if tick is None else int(tick)

    def ranges(self, tick: int) -> Ranges:
        """The instants that a retained tick was about."""
        rows = self._db.all("SELECT ranges FROM retained WHERE tick = ?", tick)
        return msgspec.msgpack.decode(rows[0][0], type=Ranges) if rows else {}

    def by_tick(self, upto: int) -> Iterator[tuple[int, list[Segment]]]:
        """The segments of each retained tick up to this one."""
        sql = "SELECT tick, packed FROM results WHERE tick <= ? ORDER BY tick"
        for tick, rows in groupby(self._db.all(sql, upto), key=itemgetter(0)):
            yield int(tick), [_segment(packed) for _, packed in rows]

    # --- contents of results, as of the oldest retained tick

    def contents(self, table: Table) -> list[Segment]:
        rows = self._db.all("SELECT packed FROM contents WHERE name = ?", table)
        return [_segment(packed) for (packed,) in rows]

    def change_contents(self, added: Iterable[Segment], removed: Iterable[Segment]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        with self._db.transaction() as db:
            db.executemany(
                "DELETE FROM contents WHERE bundle = ? AND start = ?", [s.key for s in removed]
            )
            db.executemany(
                "INSERT INTO contents VALUES (?, ?, ?, ?)",
                [(s.bundle, s.offset, s.table, encode(s)) for s in added],
            )

    def content_bundles(self) -> set[str]:
        return {bundle for (bundle,) in self._db.all("SELECT DISTINCT bundle FROM contents")}

    def files_of_state(self) -> set[str]:
        """Those that hold results, too."""
        rows = self._db.all("SELECT DISTINCT bundle FROM results")
        return {file_of(bundle) for (bundle,) in rows if is_beside(bundle)}

    def bundles(self) -> set[str]:
        return {bundle for (bundle,) in self._db.all("SELECT DISTINCT bundle FROM results")}

    def delete(self, query: str) -> None:
        """What a query has said, and how far its sinks have come: it is gone."""
        with self._db.transaction() as db:
            self.remembered.changed()
            db.execute("DELETE FROM results WHERE name = ?", (result_table(query),))
            db.execute("DELETE FROM contents WHERE name = ?", (content_table(query),))
            db.execute("DELETE FROM sink_progress WHERE query = ?", (query,))
            db.execute("DELETE FROM row_counts WHERE query = ?", (query,))

    # --- sinks

    def progress(self, query: str, sink: str) -> bytes | None:
        sql = "SELECT value FROM sink_progress WHERE query = ? AND sink = ?"
        rows = self._db.all(sql, query, sink)
        return rows[0][0] if rows else None

    def write_progress(self, progress: Mapping[tuple[str, str], bytes]) -> None:
        with self._db.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO sink_progress VALUES (?, ?, ?)",
                [(query, sink, value) for (query, sink), value in progress.items()],
            )

    # --- counts

    def row_count(self, query: str) -> int:
        """How many rows a query has said since it was submitted."""
        rows = self._db.all("SELECT rows FROM row_counts WHERE query = ?", query)
        return int(rows[0][0]) if rows else 0

    def count_rows(self, rows: Mapping[str, int]) -> None:
        with self._db.transaction() as db:
            db.executemany(
                "INSERT INTO row_counts VALUES (?, ?) ON CONFLICT (query) "
                "DO UPDATE SET rows = rows + excluded.rows",
                rows.items(),
            )
