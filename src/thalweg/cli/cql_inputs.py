"""CQL from files, folders, stdin or the command line, in parts that fit into a request."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from thalweg.cli.exits import BAD_INPUT, CommandFailed

LARGEST_PART = 400_000  # characters, and a statement more: ticks wait for it for half a second
LARGEST_BATCH = 2_000  # texts
# A semicolon that ends a line, outside strings and comments: a part can end there.
_BREAK = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|(;[ \t\r]*\n)", re.DOTALL)


class Text(NamedTuple):
    name: str
    cql: str
    folder: Path
    first_line: int = 1


def files_of(paths: Iterable[str]) -> list[str | Path]:
    """Files, and - for stdin; of folders all .cql files below them."""
    found: list[str | Path] = []
    for path in paths:
        if path != "-" and Path(path).is_dir():
            files = sorted(f for f in Path(path).rglob("*.cql") if f.is_file())
            if not files:
                raise CommandFailed(f"{path} has no .cql files", BAD_INPUT)
            found += files
        else:
            found.append(path if path == "-" else Path(path))
    return found


def texts_of(files: Iterable[str | Path], given: list[str]) -> Iterator[Text]:
    here = Path.cwd()
    for file in files:
        yield Text("<stdin>", sys.stdin.read(), here) if isinstance(file, str) else _text(file)
    for number, cql in enumerate(given, 1):
        yield Text("<-e>" if len(given) == 1 else f"<-e {number}>", cql, here)


def _text(file: Path) -> Text:
    try:
        return Text(str(file), file.read_text(), file.resolve().parent)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandFailed(f"can't read {file}: {reason}", BAD_INPUT) from None


def parts_of(text: Text) -> Iterator[Text]:
    """A long text in parts, cut between statements that stand on lines of their own."""
    start, line = 0, text.first_line
    if len(text.cql) > LARGEST_PART:
        for found in _BREAK.finditer(text.cql):
            if found[1] is not None and found.end() - start > LARGEST_PART:
                part = text.cql[start : found.end()]
                yield text._replace(cql=part, first_line=line)
                start, line = found.end(), line + part.count("\n")
    if start < len(text.cql) or not start:
        yield text._replace(cql=text.cql[start:], first_line=line)


def batches_of(texts: Iterable[Text]) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        for part in parts_of(text):
            batch.append(part)
            size += len(part.cql)
            if size > LARGEST_PART or len(batch) == LARGEST_BATCH:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch
