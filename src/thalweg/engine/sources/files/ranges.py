"""Files cut into ranges that can be read side by side.

A range of a text file is one of bytes; a line belongs to the range in which it starts, as in
Hadoop's splits. A range of a Parquet file is one of row groups. A packed file is one range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from thalweg.engine.sources.files.locate import File

WHOLE = -1  # as the end of a range: to the end of a file that is packed
_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes, or row groups, [start, end) of a file; `size` bytes. The first `skip` rows (or lines)
    have landed before."""

    file: str
    start: int
    end: int
    size: int
    skip: int = 0


def ranges_of(file: File, form: str, size: int, rows_done: int, offset: int) -> Iterator[Range]:
    """What is left of a file after so many rows (or lines), which end at a byte offset, or at one
    that is not known (-1); in ranges of about so many bytes."""
    if form == "parquet":
        yield from _of_tables(file, size, rows_done)
    elif file.path.endswith(".gz"):
        if rows_done == 0 or offset < file.size:
            yield Range(file.path, 0, WHOLE, file.size, rows_done)
    else:
        start = offset if offset >= 0 else offset_behind(file.path, rows_done)
        while start < file.size:
            end = min(start + size, file.size)
            yield Range(file.path, start, end, end - start)
            start = end


def _of_tables(file: File, size: int, rows_done: int) -> Iterator[Range]:
    with pq.ParquetFile(file.path) as parquet:
        groups = [parquet.metadata.row_group(i) for i in range(parquet.metadata.num_row_groups)]
        sizes = [(g.num_rows, g.total_byte_size) for g in groups]
    first, rows, held = 0, 0, 0
    skip = rows_done
    for number, (count, bytes_) in enumerate(sizes):
        if number == first and skip >= count:
            first, skip = number + 1, skip - count
            continue
        rows, held = rows + count, held + bytes_
        if held >= size or number == len(sizes) - 1:
            yield Range(file.path, first, number + 1, held, skip)
            first, rows, held, skip = number + 1, 0, 0, 0


def offset_behind(path: str, lines: int) -> int:
    """The byte behind so many lines."""
    if lines == 0:
        return 0
    at = 0
    with Path(path).open("rb") as file:
        while chunk := file.read(_READ):
            found = chunk.count(b"\n")
            if found >= lines:
                for _ in range(lines):
                    at += chunk.index(b"\n") + 1
                    chunk = chunk[chunk.index(b"\n") + 1 :]
                return at
            lines, at = lines - found, at + len(chunk)
    return at
