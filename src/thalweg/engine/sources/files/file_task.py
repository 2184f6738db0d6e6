"""What a task does with a range of a file: read, parse, type, judge and write it where it is.

Runs in Spark's Python workers, and knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import msgspec
import polars as pl
import pyarrow.parquet as pq

from thalweg.engine.shared.ingest.task_landing import Keys, Place, TaskLanding, Written
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.sources.arrow import frame_of_arrow
from thalweg.engine.sources.files.direct import opened
from thalweg.engine.sources.files.forms import Form
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.ranges import WHOLE, Range
from thalweg.engine.sources.rows import columns_of

_BLOCK_BYTES = 4 << 20
_PACKED_LINES = 65_536


@dataclass(frozen=True, slots=True)
class Errand:
    """A range of a partition; `first` counts the lines (or rows) of the file before it, where that
    is known."""

    range: Range
    partition: int
    place: Place
    first: int = 0


@dataclass(frozen=True)
class LandRange:
    """The task; its report is packed, or nothing where the file can't be opened from here."""

    form: Form
    folder: Folder
    rows_per_piece: int
    keys: Keys = ()

    def __call__(self, errand: Errand) -> bytes:
        landing = TaskLanding(
            self.form.stream, self.folder, errand.partition, errand.place, self.keys
        )
        counted = 0
        try:
            for count, rows in self._parts(errand):
                counted += count
                if rows.height:
                    landing.take(rows)
        except (FileNotFoundError, PermissionError):
            return b""
        written = msgspec.structs.replace(landing.close(), lines=counted)
        return msgspec.msgpack.encode(written)

    def _parts(self, errand: Errand) -> Iterator[tuple[int, pl.DataFrame]]:
        """Rows, and of how many lines (or rows of a table) they are made."""
        if self.form.name == "parquet":
            yield from self._tables(errand.range)
            return
        lines = self.form.lines()
        assert lines is not None
        of = errand.range
        with opened(of.file) as file:
            if of.start > 0:
                lines.begin(Block(of.file, 0, file.readline()))
            counted, skip = 0, of.skip
            blocks = _packed(file) if of.end == WHOLE else _texts(file, of.start, of.end)
            for text in blocks:
                block = Block(of.file, errand.first + counted, text)
                counted += block.count
                taken = lines.begin(block) if of.start == 0 and counted == block.count else block
                taken = taken.without_first_rows(skip - (taken.first - block.first))
                known = min(skip, block.count)
                skip -= known
                yield block.count - known, lines.frame(taken)

    def _tables(self, of: Range) -> Iterator[tuple[int, pl.DataFrame]]:
        wanted, skip = {c.lower() for c in columns_of(self.form.stream)}, of.skip
        with pq.ParquetFile(of.file) as parquet:
            names = [n for n in parquet.schema_arrow.names if n.lower() in wanted]
            groups = range(of.start, of.end)
            for batch in parquet.iter_batches(self.rows_per_piece, groups, names):
                rest = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - rest.num_rows
                yield rest.num_rows, frame_of_arrow(rest)


def _texts(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Blocks of the lines that start in [start, end), each with its line end."""
    file.seek(max(0, start - 1))
    if start > 0:
        file.readline()  # the rest of the line before
    while (at := file.tell()) < end:
        text = file.read(min(_BLOCK_BYTES, end - at))
        if not text:
            return  # the file has become shorter
        text += b"" if text.endswith(b"\n") else file.readline()
        yield text if text.endswith(b"\n") else text + b"\n"


def _packed(file: BinaryIO) -> Iterator[bytes]:
    while some := list(islice(file, _PACKED_LINES)):
        text = b"".join(some)
        yield text if text.endswith(b"\n") else text + b"\n"


def read_report(packed: bytes) -> Written:
    return msgspec.msgpack.decode(packed, type=Written)
