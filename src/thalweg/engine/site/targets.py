"""From a text such as `results.jsonl` to a sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from thalweg.engine.sinks.base import Sink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sinks.parquet import ParquetSink
from thalweg.engine.site.errors import WrongUse

_KINDS: dict[str, Callable[[Path], Sink]] = {"jsonl": JsonLinesSink, "parquet": ParquetSink}


def open_target(target: str, folder: Path) -> Sink:
    """`jsonl:path` (a file), `parquet:path` (a folder), or a path that ends in .jsonl or .parquet.

    Relative paths start at the folder.
    """
    scheme, colon, path = target.partition(":")
    if not colon:
        scheme, path = Path(target).suffix.removeprefix("."), target
    kind = _KINDS.get(scheme.lower())
    if kind is None or not path:
        raise WrongUse(
            f"there is no sink {target!r}: write jsonl:FILE or parquet:FOLDER "
            "(or a path that ends in .jsonl or .parquet)"
        )
    return kind(folder / path)
