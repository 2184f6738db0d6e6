"""A folder of files that are written once: on a disk, or in a store with the disk as a cache.

Nothing counts before the book lists it, and the book lists a file only when it is kept. So a file
that is here and not in the book is nobody's, and one that is in the book can be had anywhere.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from thalweg.engine.durable import sync
from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.names import file_name
from thalweg.engine.shared.state.remote.objects import Objects, objects_at

_WRITTEN_ONCE = ("segments", "landed", "results", "contents")
# An executor's environment may say where its copies are, if not at the driver's path.
CACHE = "THALWEG_CACHE"
_AT_ONCE = 8  # requests
_CACHED_S = 600.0  # a file that nobody lists may be one that is being written


class Folder(msgspec.Struct, frozen=True):
    """Goes along with a tick to its tasks, which may run on other machines."""

    path: str
    store: str = ""  # the object store's URL
    key: str = ""  # of this folder there
    durable: bool = True

    def __truediv__(self, name: str) -> Folder:
        """A folder in it."""
        key = f"{self.key}/{name}" if self.key else name
        return Folder(str(Path(self.path) / name), self.store, key, self.durable)

    @property
    def _local(self) -> Path:
        cache = os.environ.get(CACHE) if self.store else None
        if cache is None:
            return Path(self.path)
        return Path(cache) / file_name(self.store) / self.key

    @property
    def here(self) -> Path:
        path = self._local
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def _objects(self) -> Objects | None:
        return objects_at(self.store) if self.store else None

    def _key(self, name: str) -> str:
        return f"{self.key}/{name}"

    # --- files

    def new(self, name: str) -> Path:
        """Where to write a file, to be followed by `keep`."""
        return self.here / name

    def keep(self, name: str) -> None:
        """Make a file durable that has been written here."""
        path = self._local / name
        if self._objects is not None:
            self._objects.put(self._key(name), path)
        elif self.durable:
            sync(path)

    def get(self, name: str) -> Path:
        """A file that was kept, here or on another machine."""
        path = self._local / name
        if self._objects is not None and not path.exists():
            fetched = self.here / f"{name}.{uuid.uuid4().hex[:8]}.partial"
            fetched.write_bytes(self._fetched(self._objects, name))
            fetched.rename(path)  # several tasks may fetch it at once; each has all of it
        return path

    def fetch(self, names: Iterable[str]) -> None:
        """Have files here before somebody asks for one after the other: a store answers many
        requests in the time of one."""
        if self._objects is None:
            return
        missing = [name for name in set(names) if not (self._local / name).exists()]
        if len(missing) > 1:
            with ThreadPoolExecutor(min(_AT_ONCE, len(missing))) as pool:
                list(pool.map(self.get, missing))

    def _fetched(self, objects: Objects, name: str) -> bytes:
        try:
            return objects.get(self._key(name))
        except FileNotFoundError:
            raise Unavailable(f"{self._key(name)} is not in {self.store}") from None

    def remove(self, names: Iterable[str]) -> None:
        gone = list(names)
        for name in gone:
            (self._local / name).unlink(missing_ok=True)
        if self._objects is not None and gone:
            self._objects.discard(map(self._key, gone))

    # --- all of them

    def names(self) -> list[str]:
        """Of all files, wherever they are; for starts, not for ticks."""
        with os.scandir(self.here) as there:  # there may be many, and state is looked at every tick
            found = {entry.name for entry in there}
        if self._objects is not None:
            found |= {key.rpartition("/")[2] for key in self._objects.keys(f"{self.key}/")}
        return sorted(found)

    def sweep(self, listed: Collection[str]) -> None:
        """Remove what the book does not list: of a crash, of ticks that failed."""
        self.remove(name for name in self.names() if name not in listed)

    def replace(self, before: Collection[str], listed: Collection[str]) -> None:
        """The book has listed `before`, and lists these now; at every tick, so that a store is not
        asked for what it has."""
        if self.store:
            self.remove(name for name in before if name not in listed)
            self.forget(listed)
        else:
            self.sweep(listed)

    def forget(self, listed: Collection[str]) -> None:
        """Where the disk is a cache: make room."""
        if not self.store:
            return
        oldest = time.time() - _CACHED_S
        for path in self.here.iterdir():
            if path.name not in listed and path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def put_all(files: Folder) -> None:
    """A data directory goes into a store: all files that its book may list."""
    for name in _WRITTEN_ONCE:
        folder = files / name
        for path in sorted(folder.here.iterdir()):
            folder.keep(path.name)
