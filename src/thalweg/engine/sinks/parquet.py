"""Parquet: files named after the instants that they are about, so that a tick that is repeated
replaces its own file: exactly once."""

from __future__ import annotations

import os
import re
from pathlib import Path

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.append import sync_folder
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.flat import flat
from thalweg.plan.windows import BEGINNING, FOREVER

_FILE = re.compile(r"run-(\d+)-from-(-?\d+|start)-upto-(-?\d+|end)\.parquet")
PARTIAL = ".partial-"  # Spark and others pass over names that start with a dot


class ParquetSink:
    """A folder with a file for each tick in which the query had rows: its run, and [from, upto)."""

    def __init__(self, folder: Path | str, *, durable: bool = True) -> None:
        self.folder = Path(folder)
        self._durable = durable
        self._upto = BEGINNING
        self._is_named = True  # whether the names of all files are durable

    def open(self, committed: bytes | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._upto = BEGINNING if committed is None else int(committed)
        for path in sorted(self.folder.iterdir()):
            found = _FILE.fullmatch(path.name)
            if found and committed is None:
                raise SinkError(
                    f"{self.folder} has results of another run ({path.name}): "
                    "choose an empty folder, or remove them"
                )
            if path.name.startswith(PARTIAL) or (found and _instant(found[3]) > self._upto):
                path.unlink()

    def write(self, emission: Emission) -> None:
        self._upto = emission.upto
        if not emission.rows.height:
            return
        name = file_of(emission)
        partial = self.folder / f"{PARTIAL}{name}"
        with partial.open("wb") as file:
            flat(emission).write_parquet(file, compression="zstd", compression_level=1)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        partial.rename(self.folder / name)
        self._is_named = False

    def progress(self) -> bytes:
        if self._durable and not self._is_named:
            sync_folder(self.folder)
            self._is_named = True
        return str(self._upto).encode()

    def close(self) -> None:
        pass


def file_of(emission: Emission) -> str:
    low = "start" if emission.low <= BEGINNING else emission.low
    upto = "end" if emission.upto >= FOREVER else emission.upto
    return f"run-{emission.run}-from-{low}-upto-{upto}.parquet"


def _instant(text: str) -> int:
    return FOREVER if text == "end" else int(text)
