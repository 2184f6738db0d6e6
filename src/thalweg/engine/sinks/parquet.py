"""Parquet: files named after the run and the instants that they are about, each written once its
rows are many or old enough: exactly once.

Rows that wait for their file are in a file of their own (`.waiting-N`), which grows like other
sinks' files and is cut back after a crash. Writing a Parquet file begins the next such file; the
one before it is kept until then, so that a tick that is repeated finds what it started from.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from thalweg.engine.durable import sync
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.large import LargeEmission
from thalweg.engine.sinks.append import AppendedFile, FileLock
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.flat import flat
from thalweg.engine.sinks.waiting import read_frames, to_bytes
from thalweg.plan.windows import BEGINNING, FOREVER

_FILE = re.compile(r"run-(\d+)-from-(-?\d+|start)-upto-(-?\d+|end)\.parquet")
_ENDED = re.compile(r"_run-(\d+)-ended-(-?\d+|start)")
_ANY_RUN = -1
PARTIAL, WAITING = (
    ".partial-",
    ".waiting-",
)  # Spark and others pass over names that start with a dot


class Progress(msgspec.Struct, frozen=True):
    """How far the query's result has been taken, and what waits for a file: `length` bytes of
    `.waiting-N` with so many rows, about instants from `low` on, since a time of day."""

    run: int = 0
    upto: int = BEGINNING
    waiting: int = 0
    length: int = 0
    rows: int = 0
    low: int = BEGINNING
    since_s: float = 0.0


class ParquetSink:
    """A folder with files of a query's rows: their run, and [from, upto).

    A file is written with `most_rows` rows, or when the oldest of them has waited `most_age_s`;
    without these, at every tick that has rows. Behind a version of the query stands an empty file
    `_run-R-ended-INSTANT`.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        most_rows: int = 1,
        most_age_s: float = 0.0,
        durable: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(folder)
        self._most_rows, self._most_age_s = most_rows, most_age_s
        self._durable, self._clock = durable, clock
        self._at = Progress()
        self._waiting: AppendedFile | None = None
        self._lock = FileLock(self.folder / ".lock")
        self._is_named = True  # whether the names of all files are durable

    def open(self, committed: bytes | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            self._at = _progress(committed)
            self._remove_what_is_behind(is_first=committed is None)
            if self._at.rows:
                self._open_waiting(self._at.length)
        except BaseException:
            self._lock.release()
            raise

    def _remove_what_is_behind(self, *, is_first: bool) -> None:
        at = self._at
        kept = f"{WAITING}{at.waiting}" if at.rows else None
        for path in sorted(self.folder.iterdir()):
            file, ended = _FILE.fullmatch(path.name), _ENDED.fullmatch(path.name)
            if file and is_first:
                raise SinkError(
                    f"{self.folder} has results that this sink did not write ({path.name}): "
                    "choose an empty folder, or remove them"
                )
            is_behind = (
                (file and _is_beyond(int(file[1]), _instant(file[3]), at))
                or (ended and int(ended[1]) >= at.run)
                or path.name.startswith(PARTIAL)
                or (path.name.startswith(WAITING) and path.name != kept)
            )
            if is_behind:
                path.unlink()

    def write(self, emission: Emission) -> None:
        if emission.run != self._at.run:
            self._flush()
        is_last = emission.mark is not None or emission.upto >= FOREVER
        if isinstance(emission, LargeEmission):
            self._flush()
            for part, path in emission.encoded(write_table):
                self._at = Progress(emission.run, part.upto, self._at.waiting)
                self._write_file(path, part.low)
        elif not self._at.rows and (is_last or self._is_enough(emission.rows.height, 0.0)):
            self._at = Progress(emission.run, emission.upto, self._at.waiting)
            if emission.rows.height:
                self._write_file(flat(emission), emission.low)
        else:
            self._let_wait(emission)
            if is_last or self._is_due():
                self._flush()
        if emission.mark is not None:
            instant = _text(emission.mark.instant)
            (self.folder / f"_run-{emission.run}-ended-{instant}").touch()
            self._is_named = False

    def _let_wait(self, emission: Emission) -> None:
        at, height = self._at, emission.rows.height
        if height:
            if self._waiting is None:
                self._open_waiting(0)
            assert self._waiting is not None
            self._waiting.append(to_bytes(flat(emission)))
        self._at = Progress(
            emission.run,
            emission.upto,
            at.waiting,
            self._waiting.length if self._waiting is not None else 0,
            at.rows + height,
            at.low if at.rows else emission.low,
            at.since_s if at.rows else self._clock(),
        )

    def _is_enough(self, rows: int, age_s: float) -> bool:
        return rows >= self._most_rows or (rows > 0 and age_s >= self._most_age_s)

    def _is_due(self) -> bool:
        return self._is_enough(self._at.rows, self._clock() - self._at.since_s)

    def rest(self) -> bool:
        """While nothing comes: write what has waited long enough; whether there was something."""
        if not self._is_due():
            return False
        self._flush()
        return True

    def finish(self) -> bool:
        """Before the end: write what waits; whether there was something."""
        has_rows = self._at.rows > 0
        self._flush()
        return has_rows

    def _flush(self) -> None:
        at = self._at
        if not at.rows:
            return
        assert self._waiting is not None
        self._waiting.close()
        rows = pl.concat(read_frames(self._waiting.path, at.length))
        self._waiting = None
        self._write_file(rows, at.low)
        (self.folder / f"{WAITING}{at.waiting - 1}").unlink(missing_ok=True)
        self._at = Progress(at.run, at.upto, at.waiting + 1)

    def _write_file(self, rows: pl.DataFrame | Path, low: int) -> None:
        """Rows, or a file that has them already."""
        name = f"run-{self._at.run}-from-{_text(low)}-upto-{_text(self._at.upto)}.parquet"
        partial = self.folder / f"{PARTIAL}{name}"
        with partial.open("wb") as file:
            if isinstance(rows, Path):
                with rows.open("rb") as made:
                    shutil.copyfileobj(made, file, 1 << 20)
            else:
                rows.write_parquet(file, compression="zstd", compression_level=1)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        partial.rename(self.folder / name)
        self._is_named = False

    def _open_waiting(self, length: int) -> None:
        path = self.folder / f"{WAITING}{self._at.waiting}"
        self._waiting = AppendedFile(path, durable=self._durable, is_shared=True)
        self._waiting.open(length)

    def progress(self) -> bytes:
        if self._waiting is not None:
            self._waiting.sync()
        if self._durable and not self._is_named:
            sync(self.folder)
            self._is_named = True
        return msgspec.json.encode(self._at)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None
        self._lock.release()


def write_table(emission: Emission, path: Path) -> None:
    """In a task: a part of what is much."""
    flat(emission).write_parquet(path, compression="zstd", compression_level=1)


def _progress(committed: bytes | None) -> Progress:
    if committed is None:
        return Progress()
    if committed.lstrip(b"-").isdigit():  # as older versions wrote it: a file for every tick
        return Progress(_ANY_RUN, int(committed))
    return msgspec.json.decode(committed, type=Progress)


def _is_beyond(run: int, upto: int, at: Progress) -> bool:
    """Whether a file has what was never committed, or what waits."""
    written = at.low if at.rows else at.upto
    return upto > written if at.run in (run, _ANY_RUN) else run > at.run


def _text(instant: int) -> str:
    if instant <= BEGINNING:
        return "start"
    return "end" if instant >= FOREVER else str(instant)


def _instant(text: str) -> int:
    return FOREVER if text == "end" else int(text)
