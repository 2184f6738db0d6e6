"""One process at a time has a data directory; the lock goes with the process, even by kill -9."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from thalweg.engine.site.errors import WrongUse


class FolderLock:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 20).decode(errors="replace").strip()
            os.close(self._file)
            by = f" by process {holder}" if holder else ""
            raise WrongUse(
                f"{folder} is in use{by}: stop that one, or choose another data directory"
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def release(self) -> None:
        os.close(self._file)
