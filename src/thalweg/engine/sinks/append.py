"""Files that only grow; after a crash they are cut back to their committed length."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from thalweg.engine.durable import sync
from thalweg.engine.sinks.base import SinkError


class FileLock:
    """One writer at a time has a file or folder; the lock goes with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> None:
        self.release()
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            lock(self._file, self._path.parent)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def lock(file: int, path: Path) -> None:
    """Raises SinkError if somebody has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SinkError(
            f"another sink writes to {path}: two would spoil it. Choose another place."
        ) from None


class AppendedFile:
    """Bytes at the end of a file. A file that was there before the first opening is continued.

    It is locked, unless it is a part of something that is.
    """

    def __init__(self, path: Path, *, durable: bool = True, is_shared: bool = False) -> None:
        self.path = path
        self._durable, self._is_shared = durable, is_shared
        self._file: int | None = None
        self._length = 0
        self._synced = 0

    def open(self, committed: int | None) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        if not self._is_shared:
            try:
                lock(self._file, self.path)
            except SinkError:
                self.close()
                raise
        there = os.fstat(self._file).st_size
        if committed is not None and there < committed:
            self.close()
            raise SinkError(
                f"{self.path} has {there} bytes, but {committed} were written to it: "
                "somebody has cut or replaced it. Put it back, or start with another file."
            )
        self._length = self._synced = there if committed is None else committed
        os.ftruncate(self._file, self._length)
        if is_new and self._durable:
            sync(self.path.parent)

    def append(self, data: bytes | memoryview) -> None:
        assert self._file is not None
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._file, rest, self._length)
            self._length += written
            rest = rest[written:]

    def append_file(self, path: Path) -> None:
        """Another file's bytes, which need not pass through this process."""
        assert self._file is not None
        with path.open("rb") as source:
            left = os.fstat(source.fileno()).st_size
            while left:
                try:
                    copied = os.copy_file_range(
                        source.fileno(), self._file, left, offset_dst=self._length
                    )
                except OSError:  # between file systems, or where there is no such call
                    copied = 0
                if not copied:
                    self.append(source.read())
                    return
                self._length, left = self._length + copied, left - copied

    def sync(self) -> int:
        """The file's length, durable."""
        assert self._file is not None
        if self._durable and self._synced != self._length:
            os.fsync(self._file)
        self._synced = self._length
        return self._length

    @property
    def length(self) -> int:
        return self._length

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
