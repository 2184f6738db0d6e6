"""How far a source of files has come."""

from __future__ import annotations

import msgspec

from thalweg.engine.sources.files.locate import natural_key


class FileProgress(msgspec.Struct, frozen=True):
    """What has landed: all files before this one, and so many of its rows (or lines). `offset` is
    the byte behind them, or a little before the end of the last one's line; -1: not known."""

    file: str
    rows: int
    batch: int = -1  # of a watched folder
    offset: int = -1

    def rows_done(self, file: str) -> int | None:
        """How many of a file's rows have landed; None means all of them."""
        if file == self.file:
            return self.rows
        return None if natural_key(file) < natural_key(self.file) else 0
