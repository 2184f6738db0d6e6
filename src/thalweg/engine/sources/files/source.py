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
from thalweg.engine.sources.files.in_tasks import FilesInTasks, Unreachable
from thalweg.engine.sources.files.lines import Block, LineFormat
from thalweg.engine.sources.files.locate import File
from thalweg.engine.sources.files.progress import FileProgress

_PARTS_AHEAD = 2


class Files(Protocol):
    """Where files are."""

    def files(self) -> list[File]:
        """Those that are there now, in natural order."""


class Reader(Protocol):
    """How files are read."""

    def parts(self, files: Sequence[File], folder: Path) -> Iterator[Part]:
        """File by file in the given order, and in order within a file."""


class FileSource:
    """All files of a place, read once: by `tasks`, where that pays, else by this process. `by_file`
    makes each a partition of its own."""

    def __init__(
        self,
        place: Files,
        reader: Reader,
        lines: LineFormat | None,
        *,
        by_file: bool = False,
        tasks: FilesInTasks | None = None,
    ) -> None:
        self._place, self._reader, self._lines = place, reader, lines
        self._by_file, self._tasks = by_file, tasks

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
        if self._tasks is not None and feed.lands_in_tasks and self._tasks.pays(left, done):
            try:
                self._tasks.read(feed, left, done, partitions or {}, batch)
                return
            except Unreachable as file:
                feed.warn(f"tasks can't open {file}, so the driver reads: share the folder")
                done = _furthest(feed, len(partitions or (0,))) or done
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
