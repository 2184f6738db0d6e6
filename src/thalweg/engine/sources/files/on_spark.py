"""Reads files through Spark, wherever Spark can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import StructType

from thalweg.engine.sources.files.direct import Part, Table
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.locate import File, natural_key
from thalweg.engine.sources.pieces import pieces_of
from thalweg.engine.sources.staging import FILE, LINE, START

BYTES_PER_JOB = 256 << 20


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
            yield from self.parts_of(self.read(self.session.read, paths), folder)

    def parts_of(self, frame: DataFrame, folder: Path) -> Iterator[Part]:
        """What `read` has read, in order."""
        firsts: dict[str, int] = {}
        for piece in pieces_of(frame, folder, self._rows, lambda uri: natural_key(_plain(uri))):
            file, first = _plain(piece.file), firsts.get(piece.file, 0)
            is_table = self.form == "parquet"
            part = (
                Table(file, first, piece.table()) if is_table else Block(file, first, piece.text())
            )
            firsts[piece.file] = first + part.count
            yield part

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
