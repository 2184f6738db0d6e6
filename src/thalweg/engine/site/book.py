"""What a site adds to the data directory's book: statements, parked queries, sinks.

Statements are kept as text, in order: a new version may plan an old query better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from thalweg.engine.shared.state.store import Store
from thalweg.plan.catalog import Definition, QueryDef, SinkDef, StreamDef
from thalweg.plan.windows import FOREVER

QUERY, SINK = "query", "sink"


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
class Stage:
    """A part of the book: what is at the places from one to another."""

    start: int
    texts: list[str]  # of streams and views, and first the column that begins it
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
            "SELECT place, 0, text FROM definitions WHERE kind NOT IN (?, ?) "
            "UNION ALL SELECT place, 1, text FROM added_columns ORDER BY place"
        )
        found = [Stage(0, [])]
        for place, is_addition, text in self.store.all(sql, QUERY, SINK):
            if is_addition:
                found[-1] = replace(found[-1], end=place)
                found.append(Stage(place, []))
            found[-1].texts.append(text)
        return found

    def query_texts(self, stage: Stage, size: int) -> Iterator[list[str]]:
        """Of the queries of a stage, in order, so many at a time."""
        sql = (
            "SELECT place, text FROM definitions WHERE kind = ? AND place > ? AND place < ? "
            "ORDER BY place LIMIT ?"
        )
        last = stage.start
        while rows := self.store.all(sql, QUERY, last, stage.end, size):
            last = rows[-1][0]
            yield [text for _, text in rows]

    def sink_texts(self) -> list[str]:
        sql = "SELECT text FROM definitions WHERE kind = ? ORDER BY place"
        return [text for (text,) in self.store.all(sql, SINK)]

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
            for table in ("definitions", "folders", "parked"):
                db.execute(f"DELETE FROM {table} WHERE name = ?", (definition.name,))
            if isinstance(definition, QueryDef):
                db.execute("DELETE FROM sinks WHERE query = ?", (definition.name,))
            if isinstance(definition, StreamDef):
                db.execute("DELETE FROM added_columns WHERE stream = ?", (definition.name,))

    def folder_of(self, name: str) -> str | None:
        """Where a stream's relative paths start."""
        rows = self.store.all("SELECT folder FROM folders WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    # --- parked queries

    def park(self, name: str, tick: int, error: str) -> None:
        with self.store.transaction() as db:
            db.execute("INSERT OR REPLACE INTO parked VALUES (?, ?, ?)", (name, tick, error))

    def parked(self) -> dict[str, Parked]:
        rows = self.store.all("SELECT name, tick, error FROM parked")
        return {name: Parked(tick, error) for name, tick, error in rows}

    # --- sinks

    def add_sink(self, query: str, name: str, target: str, folder: str) -> None:
        with self.store.transaction() as db:
            db.execute("INSERT INTO sinks VALUES (?, ?, ?, ?, NULL)", (query, name, target, folder))

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
            db.execute("DELETE FROM sinks WHERE query = ? AND name = ?", (query, name))
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
