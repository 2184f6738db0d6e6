"""Files that grow, in an object store: piece by piece, each an object that the book lists.

A piece is put before its transaction is committed. If that fails the piece is nobody's, and the
next one begins at the same place under another name.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

from thalweg.engine.shared.state.connection import Connection
from thalweg.engine.shared.state.folder import Folder

PIECES = "pieces"
_MOST_PIECES = 64  # of a file, before they become one


class Appended:
    def __init__(self, book: Connection, files: Folder) -> None:
        self._book, self._files, self._folder = book, files, files / PIECES

    def add(self, file: str, start: int, content: bytes) -> None:
        """Inside the transaction that makes the file so long."""
        ((count,),) = self._book.all("SELECT count(*) FROM pieces WHERE file = ?", file)
        if count >= _MOST_PIECES:
            content = (self._files.here / file).read_bytes()
            start = 0
        if start == 0:  # also where an earlier stream of that name had one
            self._forget(file)
        name = uuid.uuid4().hex
        self._folder.new(name).write_bytes(content)
        self._folder.keep(name)
        self._folder.new(name).unlink()
        with self._book.transaction() as db:
            db.execute("INSERT INTO pieces VALUES (?, ?, ?)", (file, start, name))

    def adopt(self, lengths: Mapping[str, int]) -> None:
        """Files that were on this disk before there was a store."""
        listed = {file for (file,) in self._book.all("SELECT DISTINCT file FROM pieces")}
        with self._book.transaction():
            for file, length in lengths.items():
                if length and file not in listed:
                    self.add(file, 0, (self._files.here / file).read_bytes()[:length])

    def _forget(self, file: str) -> None:
        """They stay in the store until the next start: this transaction may still fail."""
        with self._book.transaction() as db:
            db.execute("DELETE FROM pieces WHERE file = ?", (file,))

    def restore(self) -> None:
        """Bring all files here as the book knows them."""
        listed = self._book.all("SELECT file, start, name FROM pieces ORDER BY file, start")
        self._folder.sweep({name for _, _, name in listed})
        for file, pieces in groupby(listed, key=itemgetter(0)):
            path = self._files.here / file
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as out:
                for _, _, name in pieces:
                    out.write(self._folder.get(name).read_bytes())
                    self._folder.new(name).unlink()
