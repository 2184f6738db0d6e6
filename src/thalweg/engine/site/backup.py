"""Backups: a data directory as one file, also of a service that runs.

A backup holds the book as of one moment between two ticks, and the files that it lists. Those never
change once they are listed, so they are linked while no tick runs, which takes no time, and copied
afterwards.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from thalweg.engine.shared.state.inputs import IN_BOOK
from thalweg.engine.shared.state.names import side_file
from thalweg.engine.shared.state.store import BOOK, Store
from thalweg.engine.shared.tick.messages import LANDED
from thalweg.engine.site.errors import SiteError
from thalweg.engine.site.lock import FolderLock

_LISTED = {
    "segments": "SELECT DISTINCT bundle FROM segments "
    "UNION SELECT substr(bundle, 2) FROM results WHERE substr(bundle, 1, 1) = '+'",
    "results": "SELECT DISTINCT bundle FROM results WHERE substr(bundle, 1, 1) <> '+'",
    "contents": "SELECT DISTINCT bundle FROM contents",
    LANDED: f"SELECT DISTINCT file FROM landed WHERE file IS NOT NULL AND file <> '{IN_BOOK}'",
}


class BackupError(SiteError):
    """A backup that can't be made or restored, and why."""


_STAGE = ".backup-"


def sweep(folder: Path) -> None:
    """Remove what a backup that was interrupted has left in a data directory."""
    for path in folder.glob(f"{_STAGE}*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def staged(store: Store) -> Iterator[Path]:
    """A folder with all that a backup holds, linked; no tick may run until it is there."""
    with tempfile.TemporaryDirectory(prefix=_STAGE, dir=store.folder) as name:
        stage = Path(name)
        store.copy_to(stage / BOOK)
        with closing(sqlite3.connect(stage / BOOK)) as book:
            for folder, sql in _LISTED.items():
                (stage / folder).mkdir()
                for (file,) in book.execute(sql):
                    os.link((store.files / folder).get(file), stage / folder / file)
            aside = book.execute("SELECT stream, kind, length FROM set_aside").fetchall()
        for stream, kind, length in aside:
            _copy_start(store.folder, stage, side_file(stream, kind), length)
        sources = store.folder / "sources"
        if sources.exists():
            shutil.copytree(sources, stage / "sources", ignore_dangling_symlinks=True)
        yield stage


def _copy_start(folder: Path, stage: Path, file: str, length: int) -> None:
    """A file that grows, as far as the book knows it."""
    (stage / file).parent.mkdir(exist_ok=True)
    with (folder / file).open("rb") as source, (stage / file).open("wb") as target:
        left = length
        while left and (block := source.read(min(left, 1 << 20))):
            target.write(block)
            left -= len(block)


def pack(stage: Path, target: Path) -> None:
    """One file, under its name only when it is whole."""
    partial = target.with_name(f".partial-{target.name}")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=1) as archive:
            archive.add(stage, arcname=".")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def back_up_folder(folder: Path, target: Path) -> None:
    """Of a data directory that no service has open."""
    if not (folder / BOOK).exists():
        raise BackupError(f"{folder} is not a data directory: it has no {BOOK}")
    lock = FolderLock(folder)
    try:
        store = Store(folder)
        try:
            with staged(store) as stage:
                pack(stage, target)
        finally:
            store.close()
    finally:
        lock.release()


def restore(source: Path, folder: Path) -> None:
    """Make a data directory of a backup, on this machine or another."""
    if folder.exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty: restore into a new data directory")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=folder.parent) as name:
        stage = Path(name) / "data"
        try:
            with tarfile.open(source) as archive:
                archive.extractall(stage, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise BackupError(f"{source} can't be read as a backup: {error}") from None
        _check(source, stage)
        if folder.exists():
            folder.rmdir()
        stage.rename(folder)


def _listed(book: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Folders, and how their files are listed; older books do not have all of them."""
    there = {name for (name,) in book.execute("SELECT name FROM sqlite_master")}
    return ((folder, sql) for folder, sql in _LISTED.items() if sql.split()[4] in there)


def _check(source: Path, stage: Path) -> None:
    """Whether every file that the book lists is there."""
    if not (stage / BOOK).exists():
        raise BackupError(f"{source} is not a backup: it has no {BOOK}")
    with closing(sqlite3.connect(stage / BOOK)) as book:
        for folder, sql in _listed(book):
            for (file,) in book.execute(sql):
                if not (stage / folder / file).exists():
                    raise BackupError(f"{source} is not whole: {folder}/{file} is missing")
