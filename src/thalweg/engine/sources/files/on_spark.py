"""Reads files through Spark, wherever Spark can read: tasks set pieces down, the driver takes them.

Pieces lie in a folder that tasks and driver share, as the engine's own segments do. So no file is
too large for the driver, and what comes out does not depend on how Spark cut and scheduled it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import StructType

from thalweg.engine.sources.files.direct import Part, Table
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.locate import File, natural_key
from thalweg.engine.sources.files.staging import FILE, LINE, START, stage_pieces

BYTES_PER_JOB = 256 << 20
_PIECES = "file string, start long, number long, path string"


class SparkReader:
    """Parts come file by file in natural order, and in order within a file."""

    def __init__(
        self, spark: SparkSession, form: str, columns: Sequence[str], rows_per_part: int
    ) -> None:
        self.session = spark.newSession()
        self.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows_per_part)
        self.form = form
        self._columns = columns
        self._rows = rows_per_part

    def parts(self, files: Sequence[File], folder: Path) -> Iterator[Part]:
        for group in _groups(files):
            paths = [literally(file.path) for file in group]
            yield from self.staged(self.read(self.session.read, paths), folder)

    def staged(self, frame: DataFrame, folder: Path) -> Iterator[Part]:
        """The frame's rows, through a folder that is cleared for the purpose."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write = partial(stage_pieces, str(folder), self._rows)
        pieces = frame.mapInArrow(write, _PIECES).collect()
        firsts: dict[str, int] = {}
        for piece in sorted(pieces, key=lambda p: (natural_key(_plain(p.file)), p.start, p.number)):
            part = _part(self.form, _plain(piece.file), firsts.get(piece.file, 0), piece.path)
            firsts[piece.file] = part.first + part.count
            yield part
            Path(piece.path).unlink()

    def columns_in(self, file: File) -> StructType:
        """What a Parquet file holds."""
        return self.session.read.parquet(literally(file.path)).schema

    def read(self, reader: DataFrameReader | DataStreamReader, paths: str | list[str]) -> DataFrame:
        """What the files hold, each row with its file and where in it its split begins."""
        if self.form == "parquet":
            frame = reader.format("parquet").load(paths)  # type: ignore[arg-type]
            wanted = {c.lower() for c in self._columns}
            kept = [c for c in frame.columns if c.lower() in wanted]
        else:
            frame = reader.format("text").option("lineSep", "\n").load(paths)  # type: ignore[arg-type]
            kept = [LINE]
        file, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
        return frame.select(*(f"`{c}`" for c in kept), file.alias(FILE), start.alias(START))


def _part(form: str, file: str, first: int, path: str) -> Part:
    if form != "parquet":
        return Block(file, first, Path(path).read_bytes())
    with pa.memory_map(path) as mapped:
        table = pa.ipc.open_stream(mapped).read_all()
    return Table(file, first, cast(pl.DataFrame, pl.from_arrow(table)))


def _groups(files: Sequence[File]) -> Iterator[list[File]]:
    """Runs of files, each about as much as one job should read."""
    group: list[File] = []
    size = 0
    for file in files:
        if group and size + file.size > BYTES_PER_JOB:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
    if group:
        yield group


def literally(path: str) -> str:
    """Spark takes some characters of a path for a pattern."""
    return "".join("\\" + c if c in "{}[]*?\\" else c for c in path)


def _plain(uri: str) -> str:
    """A local file's path; any other file's URI as it is."""
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
