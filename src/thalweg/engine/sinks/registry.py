"""From a text such as `results.jsonl` or `kafka:host:9092/topic` to a sink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.engine.paths import ANYWHERE, AllowedFolders, PathRefused
from thalweg.engine.sinks.base import Sink, SinkError
from thalweg.engine.sinks.csv import CsvSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.options import SinkOptions
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.engine.sinks.terminal import TerminalSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS = "jsonl:FILE, csv:FILE, parquet:FOLDER, kafka:HOST:PORT/TOPIC, terminal:"


MOST_ROWS, MOST_AGE_S = 1_000_000, 10.0  # of a Parquet file


def open_sink(
    target: str,
    folder: Path,
    spark: SparkSession | None = None,
    options: Mapping[str, str] | None = None,
    allowed: AllowedFolders = ANYWHERE,
) -> Sink:
    """A sink, not yet opened. Relative paths start at the folder.

    Without a scheme, a path tells its form by its ending: .jsonl, .csv or .parquet. Raises
    SinkError.
    """
    scheme, rest = _parts(target)
    if scheme == "kafka" and rest:
        from thalweg.engine.sinks.kafka import open_kafka_sink

        return open_kafka_sink(rest, spark, options or {})
    given = SinkOptions(target, options or {})
    sink = _file_sink(scheme, rest, folder, given, allowed)
    if sink is None:
        raise SinkError(f"there is no sink {target!r}: write {FORMS}")
    given.done()
    return sink


def _file_sink(
    scheme: str, rest: str, folder: Path, options: SinkOptions, allowed: AllowedFolders
) -> Sink | None:
    match scheme:
        case "terminal":
            return TerminalSink()
        case "jsonl" if rest:
            return JsonLinesSink(_file(folder / rest, allowed))
        case "csv" if rest:
            return CsvSink(_file(folder / rest, allowed))
        case "parquet" if rest:
            most_rows = options.whole("max_rows", MOST_ROWS)
            most_age_s = options.length_s("max_age", MOST_AGE_S)
            where = _folder(folder / rest, allowed)
            return ParquetSink(where, most_rows=most_rows, most_age_s=most_age_s)
    return None


def _parts(target: str) -> tuple[str, str]:
    """The form, and the rest."""
    scheme, colon, rest = target.partition(":")
    if not colon:
        scheme, rest = Path(target).suffix.removeprefix("."), target
    return scheme.lower(), rest


def location(target: str, folder: Path) -> Path | None:
    """The file or folder that a sink has for itself, if it has one."""
    scheme, rest = _parts(target)
    if scheme not in ("jsonl", "csv", "parquet") or not rest:
        return None
    return (folder / rest).resolve()


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
