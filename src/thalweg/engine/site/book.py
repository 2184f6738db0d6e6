"""What a site adds to the data directory's book: statements, parked queries, sinks.

Statements are kept as text, in order: a new version may plan an old query better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.engine.shared.state.store import Store
from thalweg.plan.catalog import Definition, QueryDef, SetAside, SinkDef, StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.shapes import Shape
from thalweg.plan.windows import FOREVER

QUERY, SINK = "query", "sink"
COLUMN = "column"  # that is added to a stream


@dataclass(frozen=True, slots=True)
class Parked:
    """A query that the engine gave up: at which tick, and why."""

    tick: int
    error: str


@dataclass(frozen=True, slots=True)
class SinkRow:
    """A sink; where its path starts (None for one of this process), and why it was given up."""

    query: str
    name: str
    target: str
    folder: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """What makes a definition, or adds a column to one."""

    name: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the book: what is at the places from one to another."""

    start: int
    statements: list[Statement]  # of streams and views, and first the column that begins it
    end: int = FOREVER


class Book:
    def __init__(self, store: Store) -> None:
        self.store = store

    # --- definitions

    def script(self) -> str:
        """All statements that stand, as one text."""
        return script_of(text for _, _, text in self.definitions())

    def definitions(self) -> list[tuple[str, str, str]]:
        """(name, kind, text) of all that stand, in the order in which they came."""
        rows = self.store.all("SELECT name, kind, text FROM definitions ORDER BY place")
        return [(name, kind, text) for name, kind, text in rows]

    def stages(self) -> list[Stage]:
        """Streams and views, from one added column to the next: what is read must have the columns
        that it had when it was read."""
        sql = (
            "SELECT place, name, kind, text FROM definitions WHERE kind NOT IN (?, ?) "
            "UNION ALL SELECT place, stream, ?, text FROM added_columns ORDER BY place"
        )
        found = [Stage(0, [])]
        for place, name, kind, text in self.store.all(sql, QUERY, SINK, COLUMN):
            if kind == COLUMN:
                found[-1] = replace(found[-1], end=place)
                found.append(Stage(place, []))
            found[-1].statements.append(Statement(name, kind, text))
        return found

    def queries_of(self, stage: Stage, size: int) -> Iterator[list[Statement]]:
        """The queries of a stage, in order, so many at a time."""
        sql = (
            "SELECT place, name, text FROM definitions WHERE kind = ? AND place > ? AND place < ? "
            "ORDER BY place LIMIT ?"
        )
        last = stage.start
        while rows := self.store.all(sql, QUERY, last, stage.end, size):
            last = rows[-1][0]
            yield [Statement(name, QUERY, text) for _, name, text in rows]

    def sink_statements(self) -> list[Statement]:
        sql = "SELECT name, text FROM definitions WHERE kind = ? ORDER BY place"
        return [Statement(name, SINK, text) for name, text in self.store.all(sql, SINK)]

    # --- shapes of queries, for versions that will not understand their texts any more

    def write_shapes(self, shapes: Iterable[tuple[str, Shape]]) -> None:
        """Many queries have the same shape, as one object."""
        packed: dict[int, bytes] = {}
        rows = []
        for name, shape in shapes:
            if id(shape) not in packed:
                packed[id(shape)] = CODEC.encode((shape.schema, shape.streams, shape.kind))
            rows.append((name, packed[id(shape)]))
        with self.store.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO shapes VALUES (?, ?)", rows)

    def with_shapes(self) -> set[str]:
        return {name for (name,) in self.store.all("SELECT name FROM shapes")}

    def shape(self, query: str) -> Shape | None:
        """Its shape when it was last understood."""
        rows = self.store.all("SELECT packed FROM shapes WHERE name = ?", query)
        if not rows:
            return None
        try:
            return Shape(*CODEC.decode(rows[0][0]))
        except EncodingError:
            return None

    def define(self, defined: Iterable[tuple[Definition, str, str | None]]) -> None:
        """Statements with their texts, and the folder where a stream's or sink's paths start."""
        with self.store.transaction() as db:
            last, found = self._last_place(), list(defined)
            db.executemany(
                "INSERT INTO definitions VALUES (?, ?, ?, ?)",
                [
                    (definition.name, kind_of(definition), text_in_book(definition, text), place)
                    for place, (definition, text, _) in enumerate(found, last + 1)
                ],
            )
            folders = [(d.name, folder) for d, _, folder in found if folder is not None]
            db.executemany("INSERT INTO folders VALUES (?, ?)", folders)

    def _last_place(self) -> int:
        sql = (
            "SELECT max(coalesce((SELECT max(place) FROM definitions), 0), "
            "coalesce((SELECT max(place) FROM added_columns), 0))"
        )
        ((last,),) = self.store.all(sql)
        return int(last)

    def redefine(self, definition: Definition, text: str) -> None:
        """Another version of what stands; it may read all that is there by now."""
        with self.store.transaction() as db:
            db.execute(
                "UPDATE definitions SET text = ?, place = ? WHERE name = ?",
                (text_in_book(definition, text), self._last_place() + 1, definition.name),
            )
            db.execute("DELETE FROM parked WHERE name = ?", (definition.name,))

    def add_column(self, stream: str, text: str) -> None:
        """A statement that gives a stream one more column."""
        with self.store.transaction() as db:
            place = self._last_place() + 1
            db.execute("INSERT INTO added_columns VALUES (?, ?, ?)", (stream, text, place))

    def undefine(self, definition: Definition) -> None:
        with self.store.transaction() as db:
            for table in ("definitions", "folders", "owners", "parked", "shapes"):
                db.execute(f"DELETE FROM {table} WHERE name = ?", (definition.name,))
            if isinstance(definition, QueryDef):
                for table in ("sinks", "sink_options"):
                    db.execute(f"DELETE FROM {table} WHERE query = ?", (definition.name,))
            if isinstance(definition, StreamDef | SetAside):
                db.execute("DELETE FROM added_columns WHERE stream = ?", (definition.name,))

    def folder_of(self, name: str) -> str | None:
        """Where a stream's relative paths start."""
        rows = self.store.all("SELECT folder FROM folders WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    # --- whose they are

    def write_owners(self, names: Iterable[str], owner: str) -> None:
        with self.store.transaction() as db:
            rows = [(name, owner) for name in names]
            db.executemany("INSERT OR REPLACE INTO owners VALUES (?, ?)", rows)

    def owner(self, name: str) -> str | None:
        """Who has made a definition, if that is known."""
        rows = self.store.all("SELECT owner FROM owners WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def queries_owned_by(self, owner: str) -> set[str]:
        sql = "SELECT name FROM definitions NATURAL JOIN owners WHERE kind = ? AND owner = ?"
        return {name for (name,) in self.store.all(sql, QUERY, owner)}

    # --- parked queries

    def park(self, name: str, tick: int, error: str) -> None:
        with self.store.transaction() as db:
            db.execute("INSERT OR REPLACE INTO parked VALUES (?, ?, ?)", (name, tick, error))

    def unpark(self, names: Iterable[str]) -> None:
        with self.store.transaction() as db:
            db.executemany("DELETE FROM parked WHERE name = ?", [(n,) for n in names])

    def parked(self) -> dict[str, Parked]:
        rows = self.store.all("SELECT name, tick, error FROM parked")
        return {name: Parked(tick, error) for name, tick, error in rows}

    # --- sinks

    def add_sink(
        self, query: str, name: str, target: str, folder: str, options: Mapping[str, str]
    ) -> None:
        with self.store.transaction() as db:
            db.execute("INSERT INTO sinks VALUES (?, ?, ?, ?, NULL)", (query, name, target, folder))
            self.write_sink_options(query, name, options)

    def write_sink_options(self, query: str, name: str, options: Mapping[str, str]) -> None:
        packed = msgspec.msgpack.encode(dict(options))
        with self.store.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO sink_options VALUES (?, ?, ?)", (query, name, packed)
            )

    def sink_options(self) -> dict[tuple[str, str], dict[str, str]]:
        """By query and name; those of older data directories are in their CREATE SINK."""
        decode = msgspec.msgpack.Decoder(dict[str, str]).decode
        rows = self.store.all("SELECT query, name, packed FROM sink_options")
        return {(query, name): decode(packed) for query, name, packed in rows}

    def fail_sink(self, query: str, name: str, error: str) -> None:
        with self.store.transaction() as db:
            db.execute(
                "INSERT INTO sinks VALUES (?, ?, ?, NULL, ?) "
                "ON CONFLICT (query, name) DO UPDATE SET error = excluded.error",
                (query, name, "a callback", error),
            )

    def failed_sink(self, query: str, target: str, folder: str) -> str | None:
        """The name of the sink of this place that was given up."""
        sql = (
            "SELECT name FROM sinks WHERE query = ? AND target = ? AND folder = ? "
            "AND error IS NOT NULL ORDER BY name"
        )
        rows = self.store.all(sql, query, target, folder)
        return str(rows[0][0]) if rows else None

    def revive_sink(self, query: str, name: str) -> None:
        with self.store.transaction() as db:
            db.execute("UPDATE sinks SET error = NULL WHERE query = ? AND name = ?", (query, name))

    def remove_sink(self, query: str, name: str) -> None:
        """With how far it has come: a later one of this name is another one."""
        with self.store.transaction() as db:
            for table in ("sinks", "sink_options"):
                db.execute(f"DELETE FROM {table} WHERE query = ? AND name = ?", (query, name))
            db.execute("DELETE FROM sink_progress WHERE query = ? AND sink = ?", (query, name))

    def sinks(self) -> list[tuple[str, str, str, str | None]]:
        """(query, name, target, error if it was given up)"""
        rows = self.store.all("SELECT query, name, target, error FROM sinks ORDER BY query, name")
        return [(q, n, t, e) for q, n, t, e in rows]

    def all_sinks(self) -> list[SinkRow]:
        sql = "SELECT query, name, target, folder, error FROM sinks ORDER BY query, name"
        return [SinkRow(*row) for row in self.store.all(sql)]


def script_of(texts: Iterable[str]) -> str:
    return "".join(f"{text};\n" for text in texts)


def kind_of(definition: Definition) -> str:
    if isinstance(definition, SetAside):
        return definition.kind
    if isinstance(definition, StreamDef):
        if definition.is_table:
            return "table"
        return "relation" if definition.is_relation else "stream"
    if isinstance(definition, SinkDef):
        return SINK
    return QUERY if isinstance(definition, QueryDef) else "view"


def text_in_book(definition: Definition, text: str) -> str:
    """A bare query gets its name: its number may be another's at the next start."""
    if isinstance(definition, QueryDef) and not text.lstrip().upper().startswith("CREATE"):
        return f"CREATE QUERY {definition.name} AS {text}"
    return text
