"""Parquet: one file per tick, so that a repeated tick replaces its own file: exactly once."""

from __future__ import annotations

import os
import re
from pathlib import Path

from thalweg.engine.shared.results.results import Emission
from thalweg.engine.sinks.append import sync_folder
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.flat import flat

_FILE = re.compile(r"tick-(\d{12})\.parquet")
PARTIAL = ".partial-"  # Spark and others pass over names that start with a dot


class ParquetSink:
    """A folder with a file for each tick in which the query said something."""

    def __init__(self, folder: Path | str, *, durable: bool = True) -> None:
        self.folder = Path(folder)
        self._durable = durable
        self._tick = 0
        self._is_named = True  # whether the names of all files are durable

    def open(self, committed: bytes | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tick = 0 if committed is None else int(committed)
        for path in sorted(self.folder.iterdir()):
            found = _FILE.fullmatch(path.name)
            if found and committed is None:
                raise SinkError(
                    f"{self.folder} has results of another run ({path.name}): "
                    "choose an empty folder, or remove them"
                )
            if path.name.startswith(PARTIAL) or (found and int(found[1]) > self._tick):
                path.unlink()

    def write(self, emission: Emission) -> None:
        name = f"tick-{emission.tick:012d}.parquet"
        partial = self.folder / f"{PARTIAL}{name}"
        with partial.open("wb") as file:
            flat(emission).write_parquet(file, compression="zstd", compression_level=1)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        partial.rename(self.folder / name)
        self._tick, self._is_named = emission.tick, False

    def progress(self) -> bytes:
        if self._durable and not self._is_named:
            sync_folder(self.folder)
            self._is_named = True
        return str(self._tick).encode()

    def close(self) -> None:
        pass
