"""The book about what came in: partitions, landed tuples, floors, and what is kept of streams."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.engine.shared.state.connection import LISTED, Connection, listed
from thalweg.engine.shared.state.names import Table, side_file
from thalweg.engine.shared.state.segments import Section
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING, FOREVER

# In place of a file's name: the tuples themselves are in the book. A version that does not know
# this looks for such a file, and fails.
IN_BOOK = ":book"

Stems = dict[str, tuple[tuple[Expr, ...], ...]]  # stream -> the keys of its indexes


class Partition(NamedTuple):
    """A partition of a stream: its newest timestamp, and the position of its next tuple."""

    newest: int = BEGINNING
    position: int = 0


class Landed(NamedTuple):
    """Tuples of one partition that have landed, or a promise about them (no section).

    Few tuples are in the book itself (`contents`), others in a file.

    Rows below the floor came too late: the floor was raised while their file was written. `shift`
    is to be added to positions: who wrote the file did not know how many tuples come before.
    """

    stream: str
    partition: int
    newest: int
    rows: int  # accepted ones
    section: Section | None = None
    floor: int = BEGINNING
    shift: int = 0


class Relation(NamedTuple):
    """What is known of a base relation's stored changes: those below `reduced` are what is left of
    them, and rejected ones below `reported` were set aside. After the last reduction there were
    `rows_left`."""

    reduced: int = BEGINNING
    reported: int = BEGINNING
    rows_left: int = 0


class Inputs:
    def __init__(self, db: Connection) -> None:
        self._db = db

    # --- partitions

    def partition(self, stream: str, partition: int) -> Partition | None:
        sql = "SELECT newest, position FROM partitions WHERE stream = ? AND partition = ?"
        rows = self._db.all(sql, stream, partition)
        return Partition(*rows[0]) if rows else None

    def partitions(self) -> dict[tuple[str, int], Partition]:
        rows = self._db.all("SELECT stream, partition, newest, position FROM partitions")
        return {(s, p): Partition(newest, position) for s, p, newest, position in rows}

    def partitions_of(self, stream: str) -> list[int]:
        sql = "SELECT partition FROM partitions WHERE stream = ? ORDER BY partition"
        return [p for (p,) in self._db.all(sql, stream)]

    def cuts(self) -> dict[tuple[str, int], int]:
        """The newest timestamp of each partition as of the last tick."""
        rows = self._db.all("SELECT stream, partition, cut FROM partitions")
        return {(s, p): cut for s, p, cut in rows}

    def write_partitions(self, partitions: Mapping[tuple[str, int], Partition]) -> None:
        with self._db.transaction() as db:
            db.executemany(
                "INSERT INTO partitions VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream, partition) "
                "DO UPDATE SET newest = excluded.newest, position = excluded.position",
                [(s, p, of.newest, BEGINNING, of.position) for (s, p), of in partitions.items()],
            )

    def write_cuts(self, newest: Iterable[tuple[str, int, int]]) -> None:
        with self._db.transaction() as db:
            db.executemany(
                "UPDATE partitions SET cut = ? WHERE stream = ? AND partition = ?",
                [(latest, s, p) for s, p, latest in newest],
            )

    def declare(self, stream: str, partitions: Iterable[int]) -> None:
        """Make partitions known before they say anything."""
        with self._db.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO partitions VALUES (?, ?, ?, ?, 0)",
                [(stream, p, BEGINNING, BEGINNING) for p in partitions],
            )

    def arrived(self) -> dict[str, int]:
        """How many tuples of each stream have come."""
        rows = self._db.all("SELECT stream, sum(position) FROM partitions GROUP BY stream")
        return dict(rows)

    # --- landed tuples

    def land(
        self,
        landed: Landed,
        divided: Mapping[Table, Section] | None = None,
        content: bytes | None = None,
    ) -> int:
        """Gives the number under which it is listed; numbers grow. `divided` are the same tuples in
        the order of SteMs, `content` are those that are in no file."""
        section = landed.section or Section("", 0, 0)
        if content is not None:
            section = Section(IN_BOOK, 0, len(content))
        with self._db.transaction() as db:
            listed = db.execute(
                "INSERT INTO landed (stream, partition, newest, rows, file, start, size, floor) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*landed[:4], section.file or None, section.offset, section.size, landed.floor),
            )
            number = int(listed.lastrowid or 0)
            if content is not None:
                held = (number, landed.stream, content)
                db.execute("INSERT INTO landed_content VALUES (?, ?, ?)", held)
            if landed.shift:
                shifted = (number, landed.stream, landed.shift)
                db.execute("INSERT INTO shifted VALUES (?, ?, ?)", shifted)
            db.executemany(
                "INSERT INTO divided VALUES (?, ?, ?, ?, ?, ?)",
                [(number, landed.stream, name, *of) for name, of in (divided or {}).items()],
            )
        return number

    def landed(self) -> list[tuple[int, Landed]]:
        """In order of arrival."""
        sql = (
            "SELECT id, l.stream, partition, newest, rows, file, start, size, floor, "
            "coalesce(shift, 0) FROM landed l LEFT JOIN shifted ON landed = id ORDER BY id"
        )
        return [
            (id_, Landed(s, p, new, rows, Section(file, start, size) if file else None, *more))
            for id_, s, p, new, rows, file, start, size, *more in self._db.all(sql)
        ]

    def contents(self, numbers: Collection[int]) -> dict[int, bytes]:
        """Of landed tuples, by number: those that are in the book itself."""
        sql = f"SELECT landed, content FROM landed_content WHERE landed IN {LISTED}"
        return dict(self._db.all(sql, listed(numbers)))

    def bytes_in_book(self) -> int:
        """Of landed tuples that are in the book itself."""
        sql = "SELECT coalesce(sum(size), 0) FROM landed WHERE file = ?"
        return int(self._db.all(sql, IN_BOOK)[0][0])

    def divided(self) -> dict[int, dict[Table, Section]]:
        """Of landed tuples, by number: where they lie in the order of SteMs."""
        found: dict[int, dict[Table, Section]] = {}
        sql = "SELECT landed, name, file, start, size FROM divided"
        for number, name, *of in self._db.all(sql):
            found.setdefault(number, {})[Table(name)] = Section(*of)
        return found

    def move_landed(self, sections: Mapping[int, Section]) -> None:
        """Tuples that have landed, by number, lie elsewhere now."""
        with self._db.transaction() as db:
            db.executemany(
                "UPDATE landed SET file = ?, start = ?, size = ? WHERE id = ?",
                [(*section, number) for number, section in sections.items()],
            )
            gone = [(number,) for number in sections]
            db.executemany("DELETE FROM landed_content WHERE landed = ?", gone)
            db.executemany("DELETE FROM divided WHERE landed = ?", gone)

    def take(self, ids: Iterable[int]) -> None:
        """These have been in a tick."""
        with self._db.transaction() as db:
            gone = [(i,) for i in ids]
            db.executemany("DELETE FROM landed WHERE id = ?", gone)
            db.executemany("DELETE FROM landed_content WHERE landed = ?", gone)
            db.executemany("DELETE FROM shifted WHERE landed = ?", gone)
            db.executemany("DELETE FROM divided WHERE landed = ?", gone)

    def landed_files(self) -> set[str]:
        rows = self._db.all("SELECT DISTINCT file FROM landed WHERE file IS NOT NULL")
        return {file for (file,) in rows if file != IN_BOOK}

    def has_landed(self) -> bool:
        """Whether tuples or promises wait for a tick."""
        return bool(self._db.all("SELECT EXISTS (SELECT 1 FROM landed)")[0][0])

    def backlog(self) -> int:
        """Tuples that have landed and wait for a tick."""
        return int(self._db.all("SELECT coalesce(sum(rows), 0) FROM landed")[0][0])

    def backlogs(self) -> dict[str, int]:
        rows = self._db.all("SELECT stream, sum(rows) FROM landed GROUP BY stream")
        return dict(rows)

    # --- where sources go on

    def resume_point(self, stream: str, partition: int) -> bytes | None:
        sql = "SELECT value FROM resume_points WHERE stream = ? AND partition = ?"
        rows = self._db.all(sql, stream, partition)
        return rows[0][0] if rows else None

    def write_resume_point(self, stream: str, partition: int, value: bytes) -> None:
        with self._db.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO resume_points VALUES (?, ?, ?)", (stream, partition, value)
            )

    # --- floors

    def floor(self, stream: str) -> int:
        """What is below it is late, whichever partition it comes from."""
        rows = self._db.all("SELECT late_below FROM floors WHERE stream = ?", stream)
        return int(rows[0][0]) if rows else BEGINNING

    def raise_floors(self, floors: Mapping[str, int]) -> None:
        with self._db.transaction() as db:
            db.executemany(
                "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
                "late_below = max(late_below, excluded.late_below)",
                [(stream, BEGINNING, floor) for stream, floor in floors.items()],
            )

    def complete_only_from(self, instants: Mapping[str, int]) -> None:
        """What is older than these is not kept any more."""
        with self._db.transaction() as db:
            db.executemany(
                "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
                "complete_from = max(complete_from, excluded.complete_from)",
                [(stream, instant, BEGINNING) for stream, instant in instants.items()],
            )

    def complete_again_from(self, instants: Mapping[str, int]) -> None:
        """What was not kept comes once more, from these on."""
        with self._db.transaction() as db:
            db.executemany(
                "INSERT INTO floors VALUES (?, ?, ?) ON CONFLICT (stream) DO UPDATE SET "
                "complete_from = excluded.complete_from",
                [(stream, instant, BEGINNING) for stream, instant in instants.items()],
            )

    # --- tuples set aside

    def set_aside(self, stream: str, kind: str) -> tuple[int, int]:
        """How many late or rejected tuples there were, and how long their file is."""
        rows = self._db.all(
            "SELECT rows, length FROM set_aside WHERE stream = ? AND kind = ?", stream, kind
        )
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def all_set_aside(self) -> dict[tuple[str, str], int]:
        """How many, by stream and kind."""
        return {(s, k): n for s, k, n in self._db.all("SELECT stream, kind, rows FROM set_aside")}

    def side_files(self) -> dict[str, int]:
        """The files of all tuples set aside, and how long they are."""
        found = self._db.all("SELECT stream, kind, length FROM set_aside")
        return {side_file(stream, kind): length for stream, kind, length in found}

    def write_set_aside(self, stream: str, kind: str, rows: int, length: int) -> None:
        with self._db.transaction() as db:
            db.execute(
                "INSERT INTO set_aside VALUES (?, ?, ?, ?) ON CONFLICT (stream, kind) "
                "DO UPDATE SET rows = rows + excluded.rows, length = excluded.length",
                (stream, kind, rows, length),
            )

    # --- what is kept of a stream

    def complete_from(self, stream: str, columns: Iterable[int]) -> int:
        """The instant from which all the stream's tuples are at hand, in all these columns."""
        rows = self._db.all("SELECT complete_from FROM floors WHERE stream = ?", stream)
        floor = int(rows[0][0]) if rows else BEGINNING
        since = self.kept_columns(stream)
        unkept = self.unseen_from(stream)
        return max([floor, *(since.get(c, unkept) for c in columns)])

    def kept_columns(self, stream: str) -> dict[int, int]:
        """The columns that are kept, and since when."""
        rows = self._db.all("SELECT place, since FROM kept_columns WHERE stream = ?", stream)
        return dict(rows)

    def keep_columns(self, stream: str, columns: Collection[int]) -> None:
        """From the tick that is being committed on; before its cuts are written."""
        known = self.kept_columns(stream)
        if known.keys() == columns:
            return
        before = behind(self._newest(stream, "cut"))
        with self._db.transaction() as db:
            db.execute("DELETE FROM kept_columns WHERE stream = ?", (stream,))
            db.executemany(
                "INSERT INTO kept_columns VALUES (?, ?, ?)",
                [(stream, c, known.get(c, before)) for c in sorted(columns)],
            )

    def know_columns(self, stream: str, since: Mapping[int, int]) -> None:
        """Columns that were kept elsewhere, and since when: what is stored comes from there."""
        with self._db.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO kept_columns VALUES (?, ?, ?)",
                [(stream, place, instant) for place, instant in since.items()],
            )

    def add_column(self, stream: str, place: int) -> None:
        """A column that is known of all tuples: those that have come have NULL in it."""
        with self._db.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO kept_columns VALUES (?, ?, ?)", (stream, place, BEGINNING)
            )

    def is_whole(self, stream: StreamDef) -> bool:
        """Whether what is stored of a stream has all its columns."""
        if self.unseen_from(stream.name) == BEGINNING:
            return True
        return len(self.kept_columns(stream.name)) == len(stream.fields)

    def unseen_from(self, stream: str) -> int:
        """From here on no tuple has been in a tick yet, nor is it in one that was interrupted."""
        field = "cut" if self._db.tick()[1] is None else "newest"
        return behind(self._newest(stream, field))

    def _newest(self, stream: str, field: str) -> int | None:
        sql = f"SELECT max({field}) FROM partitions WHERE stream = ?"
        ((newest,),) = self._db.all(sql, stream)
        return None if newest is None else int(newest)

    # --- relations

    def relation(self, stream: str) -> Relation:
        sql = "SELECT reduced, reported, rows_left FROM relations WHERE stream = ?"
        rows = self._db.all(sql, stream)
        return Relation(*rows[0]) if rows else Relation()

    def write_relation(self, stream: str, relation: Relation) -> None:
        with self._db.transaction() as db:
            db.execute("INSERT OR REPLACE INTO relations VALUES (?, ?, ?, ?)", (stream, *relation))

    def make_whole(self, stream: str, columns: int) -> None:
        """Nothing of a relation is missing any more."""
        with self._db.transaction() as db:
            db.execute("UPDATE floors SET complete_from = ? WHERE stream = ?", (BEGINNING, stream))
            db.execute("DELETE FROM kept_columns WHERE stream = ?", (stream,))
            db.executemany(
                "INSERT INTO kept_columns VALUES (?, ?, ?)",
                [(stream, place, BEGINNING) for place in range(columns)],
            )

    # --- indexes

    def stems(self) -> Stems:
        """The keys by which streams are indexed at present."""
        found: Stems = {}
        sql = "SELECT stream, keys FROM stems ORDER BY stream, place"
        for stream, keys in self._db.all(sql):
            found[stream] = (*found.get(stream, ()), _keys(keys))
        return found

    def write_stems(self, stems: Stems) -> None:
        if stems == self.stems():
            return
        with self._db.transaction() as db:
            db.execute("DELETE FROM stems")
            db.executemany(
                "INSERT INTO stems VALUES (?, ?, ?)",
                [(s, i, CODEC.encode(k)) for s, keys in stems.items() for i, k in enumerate(keys)],
            )

    def delete(self, stream: str) -> None:
        """A later stream of the same name starts from nothing."""
        tables = (
            "partitions batches landed landed_content shifted divided resume_points watched "
            "watched_upto floors set_aside stems kept_columns relations"
        )
        with self._db.transaction() as db:
            for table in tables.split():
                db.execute(f"DELETE FROM {table} WHERE stream = ?", (stream,))


@lru_cache(maxsize=4096)  # asked at every tick
def _keys(packed: bytes) -> tuple[Expr, ...]:
    found: tuple[Expr, ...] = CODEC.decode(packed)
    return found


def behind(newest: int | None) -> int:
    """The first instant behind a newest timestamp, if there is one."""
    if newest is None or newest <= BEGINNING:
        return BEGINNING
    return min(newest + 1, FOREVER)
