"""Reads local files in this process, without Spark."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl
import pyarrow.parquet as pq

from thalweg.engine.sources.arrow import frame_of_arrow
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.locate import File


@dataclass(frozen=True, slots=True)
class Table:
    """Some rows of a file that holds a table; `first` counts the rows before them."""

    file: str
    first: int
    rows: pl.DataFrame

    @property
    def count(self) -> int:
        return self.rows.height

    def without_first_rows(self, count: int) -> Table:
        return Table(self.file, self.first + count, self.rows.slice(count)) if count > 0 else self


Part = Block | Table


class DirectReader:
    """Parts come file by file in the given order, and in order within a file."""

    def __init__(self, form: str, columns: Sequence[str], rows_per_part: int) -> None:
        self._form = form
        self._wanted = {c.lower() for c in columns}
        self._rows = rows_per_part

    def parts(self, files: Sequence[File], folder: Path) -> Iterator[Part]:
        read = self._tables if self._form == "parquet" else self._blocks
        for file in files:
            yield from read(file.path)

    def _blocks(self, file: str) -> Iterator[Block]:
        first = 0
        with opened(file) as lines:
            while some := list(islice(lines, self._rows)):
                text = b"".join(some)
                yield Block(file, first, text if text.endswith(b"\n") else text + b"\n")
                first += len(some)

    def _tables(self, file: str) -> Iterator[Table]:
        first = 0
        with pq.ParquetFile(file) as parquet:
            names = [n for n in parquet.schema_arrow.names if n.lower() in self._wanted]
            for batch in parquet.iter_batches(self._rows, columns=names):
                yield Table(file, first, frame_of_arrow(batch))
                first += batch.num_rows


def opened(file: str) -> BinaryIO:
    path = Path(file)
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
