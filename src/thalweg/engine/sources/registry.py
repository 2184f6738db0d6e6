"""From `FROM '…' OPTIONS (…)` to a source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.engine.paths import ANYWHERE, AllowedFolders
from thalweg.engine.sources import generator
from thalweg.engine.sources.errors import SourceError, suggestion
from thalweg.engine.sources.feed import Source
from thalweg.engine.sources.files import open_files, open_remote_files
from thalweg.engine.sources.tables import TableSource
from thalweg.plan.catalog import StreamDef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
REMOTE = ("hdfs:", "webhdfs:", "s3a:", "gs:", "abfss:")  # Hadoop's file systems
PUSH = "push:"  # tuples are pushed: FROM 'push:', or no FROM
SCHEMES = ("generator:", PUSH, "file:", "kafka:", *REMOTE)
ROWS_PER_BATCH = 65_536


def is_pushed(stream: StreamDef) -> bool:
    """Whether tuples are pushed, so that there is no source to open."""
    return stream.source is None or stream.source.lower().startswith(PUSH)


def open_source(
    stream: StreamDef,
    spark: SparkSession | None,
    base_dir: Path,
    *,
    live: bool = True,
    rows_per_batch: int = ROWS_PER_BATCH,
    allowed: AllowedFolders = ANYWHERE,
) -> Source:
    """What feeds the stream. Relative paths start at `base_dir`.

    A live source follows what it reads for as long as it grows, at its own pace; else what is there
    is read once to its end, as fast as the engine goes, in batches of at most `rows_per_batch`.
    Raises SourceError.
    """
    try:
        rows = min(rows_per_batch, ROWS_PER_BATCH)
        return _open(stream, spark, base_dir, live, rows, allowed)
    except SourceError as error:
        error.stream = stream.name
        raise


def _open(
    stream: StreamDef,
    spark: SparkSession | None,
    base_dir: Path,
    live: bool,
    rows: int,
    allowed: AllowedFolders,
) -> Source:
    uri = stream.source if stream.source is not None else PUSH
    found = _SCHEME.match(uri)
    if stream.is_table and not is_pushed(stream):
        return _open_table(stream, uri, found[0].lower() if found else "", base_dir, spark, rows)
    match found[0].lower() if found else "":
        case generator.SCHEME:
            opened = generator.open_generated(stream, uri, live=live, rows_per_batch=rows)
            if not live and not opened.is_bounded:
                raise SourceError(
                    f"{stream.name} never ends, so it can't be replayed: "
                    "bound it with OPTIONS (limit '100000')"
                )
            return opened
        case scheme if scheme == PUSH:
            raise SourceError(
                f"{stream.name} has no recorded source to replay: "
                "say FROM 'file.csv' (or .json, .parquet, a folder, generator:…)"
            )
        case "kafka:":
            # Spark takes a second to import: whoever does without it does not pay for it.
            from thalweg.engine.sources.kafka import open_kafka

            return open_kafka(stream, uri, spark, live=live, rows_per_batch=rows)
        case "" | "file:":
            return open_files(
                stream, uri, base_dir, spark, live=live, rows_per_batch=rows, allowed=allowed
            )
        case scheme if scheme in REMOTE:
            return open_remote_files(stream, uri, spark, rows_per_batch=rows)
        case scheme:
            raise SourceError(
                f"{stream.name}: there is no source {scheme}{suggestion(scheme, SCHEMES)}"
            )


def _open_table(
    table: StreamDef,
    uri: str,
    scheme: str,
    base_dir: Path,
    spark: SparkSession | None,
    rows: int,
) -> Source:
    if scheme not in ("", "file:"):
        raise SourceError(f"{table.name}: a table is read from a file, not from {scheme}")

    def open_file() -> Source:
        return open_files(table, uri, base_dir, spark, live=False, rows_per_batch=rows)

    open_file()  # says at once what is wrong with it
    return TableSource(table, open_file)
