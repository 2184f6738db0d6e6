"""From a path and OPTIONS (…) to a source that reads files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Source
from thalweg.engine.sources.files.csv import CsvLines
from thalweg.engine.sources.files.direct import DirectReader
from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.files.lines import LineFormat
from thalweg.engine.sources.files.locate import FORMATS, File, Place, format_of, locate
from thalweg.engine.sources.files.source import FileSource
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_files(
    stream: StreamDef,
    uri: str,
    base_dir: Path,
    spark: SparkSession | None,
    *,
    live: bool,
    rows_per_batch: int,
) -> Source:
    """`watch` follows what grows; where the source is live, a folder is followed by default."""
    options = Options(stream)
    place = locate(uri, base_dir)
    watch = options.flag("watch", place.is_folder) and live
    by_file = options.choice("partitions", "one", ("one", "file")) == "file"
    form = options.choice("format", "", FORMATS)
    if not form:
        form = _told_by_endings(stream, place)
        place = place.only(form)
    lines = _lines(stream, form, options)
    options.done()
    columns = list(columns_of(stream))
    if spark is None:
        if watch:
            raise SourceError(
                f"{stream.name}: only Spark can watch {place}: run with a Spark master, "
                "or take what is there now with OPTIONS (watch 'false')"
            )
        return FileSource(
            place, DirectReader(form, columns, rows_per_batch), lines, by_file=by_file
        )
    # Spark takes a second to import: whoever does without it does not pay for it.
    from thalweg.engine.sources.files.on_spark import SparkReader
    from thalweg.engine.sources.files.watch import WatchedFiles

    reader = SparkReader(spark, form, columns, rows_per_batch)
    source = FileSource(place, reader, lines, by_file=by_file)
    if watch and by_file:
        raise SourceError(f"{stream.name}: files that are still to come can't be partitions")
    return WatchedFiles(source, place, reader) if watch else source


def _told_by_endings(stream: StreamDef, place: Place) -> str:
    # What a pattern ends with tells as much as a file: there may be no file yet.
    files = place.files()
    form = format_of(files) or format_of([File(str(place), 0)])
    if form is None:
        raise SourceError(
            f"{stream.name}: the names in {place} do not tell their format: "
            "add OPTIONS (format 'csv'), 'json' or 'parquet'"
        )
    return form


def _lines(stream: StreamDef, form: str, options: Options) -> LineFormat | None:
    match form:
        case "csv":
            delimiter = options.character("delimiter", ",")
            return CsvLines(stream, delimiter=delimiter, header=options.flag("header", True))
        case "json":
            return JsonLines(stream)
        case _:
            return None
