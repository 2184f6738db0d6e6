"""Reads files through Spark: for those that this process can't open itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.sources.files.direct import Part, Table
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.locate import File, literally, natural_key, plain_path
from thalweg.engine.sources.pieces import pieces_of
from thalweg.engine.sources.staging import FILE, LINE, START

BYTES_PER_JOB = 256 << 20


class SparkReader:
    """Parts come file by file in natural order, and in order within a file."""

    def __init__(
        self, spark: SparkSession, form: str, columns: Sequence[str], rows_per_part: int
    ) -> None:
        self._session = spark.newSession()
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows_per_part)
        self._form = form
        self._columns = columns
        self._rows = rows_per_part

    def parts(self, files: Sequence[File], folder: Path) -> Iterator[Part]:
        for group in _groups(files):
            paths = [literally(file.path) for file in group]
            yield from self._parts_of(self._read(paths), folder)

    def _parts_of(self, frame: DataFrame, folder: Path) -> Iterator[Part]:
        firsts: dict[str, int] = {}
        for piece in pieces_of(frame, folder, self._rows, lambda uri: natural_key(plain_path(uri))):
            file, first = plain_path(piece.file), firsts.get(piece.file, 0)
            is_table = self._form == "parquet"
            part = (
                Table(file, first, piece.table()) if is_table else Block(file, first, piece.text())
            )
            firsts[piece.file] = first + part.count
            yield part

    def _read(self, paths: list[str]) -> DataFrame:
        """What the files hold, each row with its file and where in it its split begins."""
        reader = self._session.read
        if self._form == "parquet":
            frame = reader.parquet(*paths)
            wanted = {c.lower() for c in self._columns}
            kept = [c for c in frame.columns if c.lower() in wanted]
        else:
            frame = reader.text(paths, lineSep="\n")
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
