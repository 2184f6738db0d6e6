"""Which files a path, a pattern or a folder means, in natural order."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from thalweg.engine.paths import ANYWHERE, AllowedFolders, PathRefused
from thalweg.engine.sources.errors import SourceError, suggestion

# A file's form, and the endings by which it is known; packed ones end in .gz besides.
ENDINGS = {
    "csv": (".csv", ".csv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    "parquet": (".parquet",),
}
FORMATS = tuple(ENDINGS)
PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream's files are: one file, what a pattern matches, or those in a folder."""

    path: str  # absolute
    is_folder: bool = False
    pattern: str | None = None  # below the path
    endings: tuple[str, ...] = ("",)  # of a folder's files that count
    allowed: AllowedFolders = ANYWHERE

    def files(self, known: Container[str] = ()) -> list[File]:
        """Those that are there now, without what is known; hidden ones, and those of Spark's own
        (`_…`), do not count."""
        found: Iterable[Path]
        if self.is_folder:
            found = (p for p in Path(self.path).iterdir() if p.name.lower().endswith(self.endings))
        elif self.pattern is not None:
            found = Path(self.path).glob(self.pattern)
        else:
            found = [Path(self.path)]
        shown = [
            path
            for p in found
            if not p.name.startswith((".", "_")) and (path := str(p)) not in known and p.is_file()
        ]
        for path in shown:
            self.check(path)  # a link may lead anywhere
        return [File(p, Path(p).stat().st_size) for p in sorted(shown, key=natural_key)]

    def check(self, file: str) -> None:
        """Raises SourceError for a file that may not be read."""
        _checked(Path(file), self.allowed)

    def __str__(self) -> str:
        return self.path if self.pattern is None else str(Path(self.path, self.pattern))

    def only(self, form: str) -> Place:
        """Without a folder's files of other forms."""
        return replace(self, endings=ENDINGS[form]) if self.is_folder else self


def locate(uri: str, base_dir: Path, allowed: AllowedFolders = ANYWHERE) -> Place:
    """The place that FROM names; relative paths start at `base_dir`. Raises SourceError."""
    name = unquote(urlsplit(uri).path) if uri.lower().startswith("file:") else uri
    path = base_dir.resolve() / name
    if PATTERN.search(name) and not _exists(path):
        root = Path(path.anchor) if Path(name).is_absolute() else base_dir.resolve()
        # Up to the first part with a pattern the path is known.
        _checked(Path(*takewhile(lambda part: not PATTERN.search(part), path.parts)), allowed)
        if ".." in path.parts:
            raise SourceError(f"a pattern can't have .. in it: {name}. Write out the folder.")
        return Place(str(root), pattern=str(path.relative_to(root)), allowed=allowed)
    _checked(path, allowed)
    if path.exists():
        return Place(str(path), is_folder=path.is_dir(), allowed=allowed)
    raise SourceError(f"there is no file {path}{_nearby(path)}")


def _checked(path: Path, allowed: AllowedFolders) -> None:
    try:
        allowed.checked(path)
    except PathRefused as refused:
        raise SourceError(str(refused)) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f": there is no folder {path.parent}"
    names = sorted(p.name for p in path.parent.iterdir())
    return suggestion(path.name, names).split(" (there are")[0]


def format_of(files: Iterable[File]) -> str | None:
    """What the endings of all these names agree on; files of no known ending have no say."""
    known = {
        form
        for file in files
        for form, endings in ENDINGS.items()
        if file.path.lower().endswith(endings)
    }
    return known.pop() if len(known) == 1 else None


def natural_key(path: str) -> tuple[list[tuple[int, int, str]], str]:
    """Numbers within names count as numbers: part-2 comes before part-10."""
    pieces = re.split(r"([0-9]+)", path)
    key = [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces if p]
    return key, path


def literally(path: str) -> str:
    """For Spark, which takes some characters of a path for a pattern."""
    return "".join("\\" + c if c in "{}[]*?\\" else c for c in path)


def plain_path(uri: str) -> str:
    """A local file's path; any other file's URI as it is."""
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
