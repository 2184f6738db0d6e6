"""Files as a source.

The order of tuples is that of the files' names (numbers in them counted as numbers), then of the
rows in each file. Modification times, and the way Spark cuts files, play no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import msgspec
import polars as pl

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.ahead import ahead
from thalweg.engine.sources.files.direct import Part
from thalweg.engine.sources.files.lines import Block, LineFormat
from thalweg.engine.sources.files.locate import File, natural_key

_PARTS_AHEAD = 2


class Files(Protocol):
    """Where files are."""

    def files(self) -> list[File]:
        """Those that are there now, in natural order."""


class Reader(Protocol):
    """How files are read."""

    def parts(self, files: Sequence[File], folder: Path) -> Iterator[Part]:
        """File by file in the given order, and in order within a file."""


class FileProgress(msgspec.Struct, frozen=True):
    """What has landed: all files before this one, and so many of its rows (or lines)."""

    file: str
    rows: int
    batch: int = -1  # of a watched folder

    def rows_done(self, file: str) -> int | None:
        """How many of a file's rows have landed; None means all of them."""
        if file == self.file:
            return self.rows
        return None if natural_key(file) < natural_key(self.file) else 0


class FileSource:
    """All files of a place, read once. `by_file` makes each a partition of its own."""

    def __init__(
        self, place: Files, reader: Reader, lines: LineFormat | None, *, by_file: bool = False
    ) -> None:
        self._place, self._reader, self._lines = place, reader, lines
        self._by_file = by_file

    def run(self, feed: Feed) -> None:
        files = self._place.files()
        if not files:
            raise SourceError(f"{feed.stream.name}: there is no file in {self._place}")
        partitions = {f.path: i if self._by_file else 0 for i, f in enumerate(files)}
        feed.declare(sorted(set(partitions.values())))
        self.read(feed, files, _furthest(feed, len(partitions)), partitions=partitions)
        if not feed.stopped:
            feed.finish()

    def read(
        self,
        feed: Feed,
        files: Sequence[File],
        done: FileProgress | None,
        *,
        partitions: dict[str, int] | None = None,
        batch: int = -1,
    ) -> None:
        """Land what the files hold, but for what has landed before; until the feed is stopped."""
        left = [f for f in files if done is None or done.rows_done(f.path) is not None]
        with closing(
            ahead(self._reader.parts(left, feed.folder / "pieces"), _PARTS_AHEAD)
        ) as parts:
            for part in parts:
                rows_done = 0 if done is None else done.rows_done(part.file)
                rows = self._rows(part, (rows_done or 0) - part.first)
                if rows.height:
                    progress = FileProgress(part.file, part.first + part.count, batch)
                    feed.push(
                        rows,
                        partition=partitions[part.file] if partitions else 0,
                        resume=msgspec.json.encode(progress),
                    )
                if feed.stopped:
                    return

    def _rows(self, part: Part, skip: int) -> pl.DataFrame:
        if not isinstance(part, Block):
            return part.without_first_rows(skip).rows
        assert self._lines is not None
        block = self._lines.begin(part) if part.first == 0 else part
        return self._lines.frame(block.without_first_rows(skip - (block.first - part.first)))


def _furthest(feed: Feed, partitions: int) -> FileProgress | None:
    """Files are read one after the other, so the last partition that has any tells all."""
    points = (feed.resume_point(p) for p in reversed(range(partitions)))
    found = next((p for p in points if p is not None), None)
    return None if found is None else msgspec.json.decode(found, type=FileProgress)
