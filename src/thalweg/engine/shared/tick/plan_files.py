"""Files that tell tasks what they have to do: plans and families of members.

A file is named after its content, so a change is a new file and workers read each only once.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Collection
from typing import Any

from msgspec import structs

from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.tick.messages import PLANS


class PlanFiles:
    def __init__(self, files: Folder) -> None:
        self._folder = structs.replace(files / PLANS, durable=False)
        self._folder.sweep(())
        self._last: dict[str, tuple[Any, str]] = {}  # of each kind
        self._written: set[str] = set()

    def write(self, kind: str, value: Any) -> str:
        """The name of a file with this value, which does not change any more."""
        last, name = self._last.get(kind, (None, ""))
        if last is value and name in self._written:
            return name
        packed = pickle.dumps(value)
        name = f"{hashlib.blake2b(packed, digest_size=8).hexdigest()}.{kind}"
        if name not in self._written:
            partial = self._folder.new(f"{name}.partial")
            partial.write_bytes(packed)
            partial.rename(self._folder.new(name))
            self._folder.keep(name)
            self._written.add(name)
        self._last[kind] = value, name
        return name

    def keep_only(self, used: Collection[str]) -> None:
        gone = self._written.difference(used)
        self._folder.remove(gone)
        self._written -= gone
