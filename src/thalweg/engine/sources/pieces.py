"""A Spark frame's rows on the driver, in a known order, without holding more than a piece of them.

Tasks set pieces down in a folder that they share with the driver, as the engine's own segments are
shared. So no input is too large for the driver, and what comes out does not depend on how Spark cut
and scheduled the work.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

from thalweg.engine.sources.staging import stage_pieces

_SCHEMA = "file string, start long, number long, path string"


class Piece(NamedTuple):
    """Some rows of a split: of which file, where the split starts, which piece of it."""

    file: str
    start: int
    number: int
    path: str

    def text(self) -> bytes:
        """Lines, each with its end, if the frame had lines only."""
        return Path(self.path).read_bytes()

    def table(self) -> pl.DataFrame:
        with pa.memory_map(self.path) as mapped:
            return cast(pl.DataFrame, pl.from_arrow(pa.ipc.open_stream(mapped).read_all()))


def pieces_of(
    frame: DataFrame, folder: Path, rows_per_piece: int, order: Callable[[str], Any]
) -> Iterator[Piece]:
    """Piece by piece: files in the given order, within a file by split and number.

    The frame has columns FILE and START beside its own. The folder is cleared before, and each
    piece is removed after its turn.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write = partial(stage_pieces, str(folder), rows_per_piece)
    found = [Piece(*row) for row in frame.mapInArrow(write, _SCHEMA).collect()]
    for piece in sorted(found, key=lambda p: (order(p.file), p.start, p.number)):
        yield piece
        Path(piece.path).unlink()
