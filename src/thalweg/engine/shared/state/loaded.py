"""Files that a process reads once, as what is in them; a change is a new file.

Several engines may tick in one process (nodes of a test, sites of a program), each on a thread of
its own: what one of them is done with, another may be about to read.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Collection
from typing import Generic, TypeVar, cast

from thalweg.engine.shared.state.folder import Folder

T = TypeVar("T")


class Loaded(Generic[T]):
    def __init__(self) -> None:
        self._found: dict[tuple[str, str], T] = {}  # by folder and file
        self._lock = threading.Lock()

    def load(self, folder: Folder, name: str) -> T:
        key = (folder.path, name)
        with self._lock:
            if key in self._found:
                return self._found[key]
        read = cast(T, pickle.loads(folder.get(name).read_bytes()))
        with self._lock:
            return self._found.setdefault(key, read)

    def keep_only(self, folder: Folder, names: Collection[str]) -> None:
        """Forget what this folder's engine does not need any more."""
        with self._lock:
            here = [k for k in self._found if k[0] == folder.path and k[1] not in names]
            for key in here:
                del self._found[key]
