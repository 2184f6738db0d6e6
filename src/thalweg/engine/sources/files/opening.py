"""From a path and OPTIONS (…) to a source that reads files."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from thalweg.engine.paths import ANYWHERE, AllowedFolders
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Source
from thalweg.engine.sources.files.csv import CsvLines
from thalweg.engine.sources.files.direct import DirectReader
from thalweg.engine.sources.files.follow import FollowedFile
from thalweg.engine.sources.files.forms import CSV, Form
from thalweg.engine.sources.files.in_tasks import FilesInTasks, on_spark
from thalweg.engine.sources.files.lines import Block, LineFormat
from thalweg.engine.sources.files.locate import FORMATS, File, Place, format_of, locate
from thalweg.engine.sources.files.source import FileSource
from thalweg.engine.sources.files.watch import WatchedFiles
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from thalweg.engine.sources.files.hadoop import HadoopPlace

    P = TypeVar("P", Place, HadoopPlace)


def open_files(
    stream: StreamDef,
    uri: str,
    base_dir: Path,
    spark: SparkSession | None,
    *,
    live: bool,
    rows_per_batch: int,
    allowed: AllowedFolders = ANYWHERE,
) -> Source:
    """`watch` follows what grows; where the source is live, a folder is followed by default."""
    options = Options(stream)
    place = locate(uri, base_dir, allowed)
    watch = options.flag("watch", place.is_folder) and live
    form, place, by_file = _settled(stream, place, options)
    lines = form.lines()
    _check_first_header(place, lines)
    reader = DirectReader(form.name, list(columns_of(stream)), rows_per_batch)
    tasks = None if spark is None else _in_tasks(form, spark, rows_per_batch)
    source = FileSource(place, reader, lines, by_file=by_file, tasks=tasks)
    if not watch:
        return source
    if not place.is_folder and place.pattern is None:
        return _followed(stream, place, lines)
    if by_file:
        raise SourceError(
            f"{stream.name}: files that are still to come can't be partitions: "
            "leave one of the two options out"
        )
    return WatchedFiles(source, place)


def _check_first_header(place: Place, lines: LineFormat | None) -> None:
    """A CSV file that lacks a column is refused now, instead of failing again and again later."""
    file = next((f for f in place.files() if f.size), None)
    if isinstance(lines, CsvLines) and file is not None:
        head = next(DirectReader("csv", (), 1).parts([file], Path(file.path).parent), None)
        if isinstance(head, Block):
            copy(lines).begin(head)


def _followed(stream: StreamDef, place: Place, lines: LineFormat | None) -> Source:
    if lines is None or place.path.endswith(".gz"):
        raise SourceError(
            f"{stream.name}: {place} is written whole, so there is nothing to follow: "
            "watch the folder that it is in, or leave watch out"
        )
    return FollowedFile(place.path, lines)


def open_remote_files(
    stream: StreamDef, uri: str, spark: SparkSession | None, *, rows_per_batch: int
) -> Source:
    """Files that only Spark can reach; read once."""
    if spark is None:
        raise SourceError(f"{stream.name}: only Spark can read {uri}: run with a Spark master")
    from thalweg.engine.sources.files.hadoop import HadoopPlace
    from thalweg.engine.sources.files.on_spark import SparkReader

    options = Options(stream)
    form, place, by_file = _settled(stream, HadoopPlace(spark, uri), options)
    reader = SparkReader(spark, form.name, list(columns_of(stream)), rows_per_batch)
    return FileSource(place, reader, form.lines(), by_file=by_file)


def _in_tasks(form: Form, spark: SparkSession, rows_per_piece: int) -> FilesInTasks:
    context = spark.sparkContext
    return FilesInTasks(form, on_spark(context), context.defaultParallelism, rows_per_piece)


def _settled(stream: StreamDef, place: P, options: Options) -> tuple[Form, P, bool]:
    """The files' form, which of them count, and whether each is a partition."""
    by_file = options.choice("partitions", "one", ("one", "file")) == "file"
    name = options.choice("format", "", FORMATS)
    if not name:
        name = _told_by_endings(stream, place)
        place = place.only(name)
    form = Form(stream, name)
    if name == CSV:
        delimiter = options.character("delimiter", ",")
        form = Form(stream, name, delimiter, options.flag("header", True))
    options.done()
    return form, place, by_file


def _told_by_endings(stream: StreamDef, place: Place | HadoopPlace) -> str:
    # What a pattern ends with tells as much as a file: there may be no file yet.
    files = place.files()
    form = format_of(files) or format_of([File(str(place), 0)])
    if form is None:
        raise SourceError(
            f"{stream.name}: the names in {place} do not tell their format: "
            "add OPTIONS (format 'csv'), 'json' or 'parquet'"
        )
    return form
