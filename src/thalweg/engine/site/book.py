"""What a site adds to the data directory's book: statements, parked queries, sinks.

Statements are kept as text, in order: a new version may plan an old query better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from thalweg.engine.shared.state.store import Store
from thalweg.plan.catalog import Definition, QueryDef, StreamDef

QUERY = "query"


@dataclass(frozen=True, slots=True)
class Parked:
    """A query that the engine gave up: at which tick, and why."""

    tick: int
    error: str


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

    def other_texts(self) -> list[str]:
        """Of all that are no queries, in order."""
        sql = "SELECT text FROM definitions WHERE kind <> ? ORDER BY place"
        return [text for (text,) in self.store.all(sql, QUERY)]

    def query_texts(self, size: int) -> Iterator[list[str]]:
        """Of the queries, in order, so many at a time."""
        sql = (
            "SELECT place, text FROM definitions WHERE kind = ? AND place > ? "
            "ORDER BY place LIMIT ?"
        )
        last = -1
        while rows := self.store.all(sql, QUERY, last, size):
            last = rows[-1][0]
            yield [text for _, text in rows]

    def define(self, defined: Iterable[tuple[Definition, str, str | None]]) -> None:
        """Statements with their texts, and the folder where a stream's paths start."""
        with self.store.transaction() as db:
            ((last,),) = self.store.all("SELECT coalesce(max(place), 0) FROM definitions")
            found = list(defined)
            db.executemany(
                "INSERT INTO definitions VALUES (?, ?, ?, ?)",
                [
                    (definition.name, kind_of(definition), text_in_book(definition, text), place)
                    for place, (definition, text, _) in enumerate(found, last + 1)
                ],
            )
            folders = [(d.name, folder) for d, _, folder in found if folder is not None]
            db.executemany("INSERT INTO folders VALUES (?, ?)", folders)

    def undefine(self, definition: Definition) -> None:
        with self.store.transaction() as db:
            for table in ("definitions", "folders", "parked"):
                db.execute(f"DELETE FROM {table} WHERE name = ?", (definition.name,))
            db.execute("DELETE FROM sinks WHERE query = ?", (definition.name,))

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
        with self.store.transaction() as db:
            db.execute("DELETE FROM sinks WHERE query = ? AND name = ?", (query, name))

    def sinks(self) -> list[tuple[str, str, str, str | None]]:
        """(query, name, target, error if it was given up)"""
        rows = self.store.all("SELECT query, name, target, error FROM sinks ORDER BY query, name")
        return [(q, n, t, e) for q, n, t, e in rows]

    def working_sinks(self) -> list[tuple[str, str, str, str]]:
        """(query, name, target, folder) of those to be opened at a start"""
        sql = "SELECT query, name, target, folder FROM sinks WHERE error IS NULL"
        return [(q, n, t, f) for q, n, t, f in self.store.all(sql)]


def script_of(texts: Iterable[str]) -> str:
    return "".join(f"{text};\n" for text in texts)


def kind_of(definition: Definition) -> str:
    if isinstance(definition, StreamDef):
        if definition.is_table:
            return "table"
        return "relation" if definition.is_relation else "stream"
    return QUERY if isinstance(definition, QueryDef) else "view"


def text_in_book(definition: Definition, text: str) -> str:
    """A bare query gets its name: its number may be another's at the next start."""
    if isinstance(definition, QueryDef) and not text.lstrip().upper().startswith("CREATE"):
        return f"CREATE QUERY {definition.name} AS {text}"
    return text
