"""Files that tell tasks what they have to do: plans and families of members.

A file is named after its content, so a change is a new file and workers read each only once.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any


class PlanFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: dict[str, tuple[Any, Path]] = {}  # of each kind
        folder.mkdir(exist_ok=True)

    def write(self, kind: str, value: Any) -> str:
        """The path of a file with this value, which does not change any more."""
        last, path = self._last.get(kind, (None, self._folder))
        if last is value and path.exists():
            return str(path)
        packed = pickle.dumps(value)
        name = hashlib.blake2b(packed, digest_size=8).hexdigest()
        path = self._folder / f"{name}.{kind}"
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.write_bytes(packed)
            partial.rename(path)
        self._last[kind] = value, path
        return str(path)

    def keep_only(self, used: Collection[str]) -> None:
        for path in self._folder.iterdir():
            if str(path) not in used:
                path.unlink(missing_ok=True)
