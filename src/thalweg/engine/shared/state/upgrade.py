"""From an older format of data directories to this version's, one step at a time.

A migration changes a data directory of one format into one of the next, in place. Before the first
one runs, the directory is copied, and the copy is kept.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from thalweg.engine.shared.state.schema import FORMAT
from thalweg.engine.shared.state.store import BOOK, StoreError

# By the format that it starts from. Format 5 is the first that is promised to be read for good.
MIGRATIONS: dict[int, Callable[[Path], None]] = {5: lambda _: None}


def format_of(folder: Path) -> int:
    """The number of a data directory's format."""
    if not (folder / BOOK).exists():
        raise StoreError(f"{folder} is not a data directory: it has no {BOOK}")
    with closing(sqlite3.connect(folder / BOOK)) as book:
        try:
            rows = book.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{folder}/{BOOK} can't be read: {error}") from None
    if not rows:
        raise StoreError(f"{folder} does not say which format it has")
    return int(rows[0][0])


def upgrade(
    folder: Path,
    *,
    to: int = FORMAT,
    migrations: Mapping[int, Callable[[Path], None]] = MIGRATIONS,
) -> Path | None:
    """Bring a data directory that nobody has open to a format; gives the copy of what it was, None
    if there was nothing to do. If a migration fails, the directory is what it was."""
    found = format_of(folder)
    if found == to:
        return None
    missing = [n for n in range(found, to) if n not in migrations]
    if found > to or missing:
        newer = "a newer version wrote it" if found > to else "it is too old to be migrated"
        raise StoreError(
            f"{folder} has format {found}, this version has {to}, and {newer}: "
            "open it with the version that wrote it"
        )
    copy = folder.with_name(f"{folder.name}.format-{found}")
    if copy.exists():
        raise StoreError(f"{copy} is in the way: it would be the copy of {folder}. Move it first.")
    shutil.copytree(folder, copy)
    try:
        for number in range(found, to):
            migrations[number](folder)
            _write_format(folder, number + 1)
    except BaseException:
        shutil.rmtree(folder)
        copy.rename(folder)
        raise
    return copy


def _write_format(folder: Path, number: int) -> None:
    with closing(sqlite3.connect(folder / BOOK)) as book, book:
        book.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(number),))
