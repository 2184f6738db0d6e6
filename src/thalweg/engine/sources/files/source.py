"""Files as a source: read once to the end, or followed as a folder grows.

The order of tuples is that of the files' names (numbers in them counted as numbers), then of the
rows in each file. Modification times and the way Spark cuts files play no part. A folder that is
watched delivers what it finds together in that order, and what comes later, later.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from thalweg.engine.sources.files.locate import File, Place, natural_key

_PARTS_AHEAD = 2


class Reader(Protocol):
    def parts(self, files: list[File], folder: Path) -> Iterator[Part]:
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
    """`by_file` makes each file a partition of its own, with a watermark of its own."""

    def __init__(
        self, place: Place, reader: Reader, lines: LineFormat | None, *, by_file: bool = False
    ) -> None:
        self._place, self._reader, self._lines = place, reader, lines
        self._by_file = by_file

    def run(self, feed: Feed) -> None:
        files = self._place.files()
        if not files:
            raise SourceError(f"{feed.stream.name}: there is no file in {self._place}")
        if self._by_file:
            feed.declare(list(range(len(files))))
        partitions = {f.path: i if self._by_file else 0 for i, f in enumerate(files)}
        done = _furthest(feed, len(files) if self._by_file else 1)
        left = [f for f in files if done is None or done.rows_done(f.path) is not None]
        parts = self._reader.parts(left, feed.folder / "pieces")
        with closing(ahead(parts, _PARTS_AHEAD)) as found:
            for part in found:
                self.deliver(feed, part, done, partition=partitions[part.file])
                if feed.stopped:
                    return
        feed.finish()

    def deliver(
        self,
        feed: Feed,
        part: Part,
        done: FileProgress | None,
        *,
        partition: int = 0,
        batch: int = -1,
    ) -> None:
        """Land the part, but for what of it has landed before."""
        end = part.first + part.count
        rows_done = 0 if done is None else done.rows_done(part.file)
        rows = self._rows(part, part.count if rows_done is None else rows_done - part.first)
        if rows.height:
            resume = msgspec.json.encode(FileProgress(part.file, end, batch))
            feed.push(rows, partition=partition, resume=resume)

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
