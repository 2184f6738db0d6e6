"""Objects that a node keeps for another one: a folder of files that are written once.

What is put is durable when it returns. `create` tells who was first, as a file system does: a link
to a name that is there fails.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from thalweg.engine.durable import sync
from thalweg.engine.shared.state.remote.objects import Taken


class KeptObjects:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, content: bytes) -> None:
        path = self._path(key)
        self._written(path, content).replace(path)
        sync(path.parent)

    def create(self, key: str, content: bytes) -> None:
        """Raises Taken, if what is there is not the same."""
        path = self._path(key)
        part = self._written(path, content)
        try:
            os.link(part, path)
        except FileExistsError:
            if path.read_bytes() != content:
                raise Taken(f"{key} was put by somebody else") from None
        finally:
            part.unlink()
        sync(path.parent)

    def get(self, key: str) -> bytes:
        """Raises FileNotFoundError."""
        return self._path(key).read_bytes()

    def keys(self, prefix: str) -> list[str]:
        found = (p for p in self._folder.rglob("*") if p.is_file() and not _is_part(p))
        keys = (p.relative_to(self._folder).as_posix() for p in found)
        return sorted(k for k in keys if k.startswith(prefix))

    def delete(self, keys: list[str]) -> None:
        for key in keys:
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        """Raises ValueError for one that is outside."""
        path = (self._folder / key).resolve()
        if not path.is_relative_to(self._folder.resolve()) or _is_part(path):
            raise ValueError(f"{key} is not a key")
        return path

    def _written(self, path: Path, content: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return part


def _is_part(path: Path) -> bool:
    """Of what is being written."""
    return path.name.startswith(".")
