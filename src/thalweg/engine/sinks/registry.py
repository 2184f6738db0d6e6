"""From a text such as `results.jsonl` or `kafka:host:9092/topic` to a sink."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.engine.paths import ANYWHERE, AllowedFolders, PathRefused
from thalweg.engine.sinks.base import Sink, SinkError
from thalweg.engine.sinks.csv import CsvSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.engine.sinks.terminal import TerminalSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS = "jsonl:FILE, csv:FILE, parquet:FOLDER, kafka:HOST:PORT/TOPIC, terminal:"


def open_sink(
    target: str,
    folder: Path,
    spark: SparkSession | None = None,
    allowed: AllowedFolders = ANYWHERE,
) -> Sink:
    """A sink, not yet opened. Relative paths start at the folder.

    Without a scheme, a path tells its form by its ending: .jsonl, .csv or .parquet. Raises
    SinkError.
    """
    scheme, colon, rest = target.partition(":")
    if not colon:
        scheme, rest = Path(target).suffix.removeprefix("."), target
    match scheme.lower():
        case "terminal":
            return TerminalSink()
        case "jsonl" if rest:
            return JsonLinesSink(_file(folder / rest, allowed))
        case "csv" if rest:
            return CsvSink(_file(folder / rest, allowed))
        case "parquet" if rest:
            return ParquetSink(_folder(folder / rest, allowed))
        case "kafka" if rest:
            from thalweg.engine.sinks.kafka import open_kafka_sink

            return open_kafka_sink(rest, spark)
        case _:
            raise SinkError(f"there is no sink {target!r}: write {FORMS}")


def _file(path: Path, allowed: AllowedFolders) -> Path:
    real = _checked(path, allowed)
    if real.is_dir():
        raise SinkError(f"{path} is a folder: name a file in it")
    return real


def _folder(path: Path, allowed: AllowedFolders) -> Path:
    real = _checked(path, allowed)
    if real.exists() and not real.is_dir():
        raise SinkError(f"{path} is a file: name a folder, in which files will be written")
    return real


def _checked(path: Path, allowed: AllowedFolders) -> Path:
    try:
        return allowed.checked(path)
    except PathRefused as refused:
        raise SinkError(str(refused)) from None
