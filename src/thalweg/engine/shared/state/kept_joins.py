"""What joins keep beside windows: the book says it, and changes with a tick's transaction.

An intermediate counts only where the flow stands at the instant up to which it was kept. So a
version that does not know of intermediates may run ticks in between: they are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from thalweg.engine.shared.state.store import Store

Inputs = tuple[int, ...]


class KeptJoin(msgspec.Struct, frozen=True):
    """A join's shape; what of it is there, up to which instant; and what led to it."""

    shape: tuple[Inputs, ...]
    built: tuple[Inputs, ...] = ()
    upto: int = 0
    changes: tuple[int, ...] = ()  # instants at which the shape was changed
    why: str = ""
    refused: tuple[tuple[Inputs, int], ...] = ()  # what took too much, until an instant


class KeptJoins:
    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> dict[str, KeptJoin]:
        """By "flow/join"."""
        decode = msgspec.msgpack.Decoder(KeptJoin).decode
        rows = self._store.all("SELECT place, packed FROM kept_joins")
        return {place: decode(packed) for place, packed in rows}

    def write(self, before: Mapping[str, KeptJoin], after: Mapping[str, KeptJoin]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        changed = [(p, encode(k)) for p, k in after.items() if before.get(p) != k]
        gone = [(p,) for p in before if p not in after]
        if changed or gone:
            with self._store.transaction() as db:
                db.executemany("INSERT OR REPLACE INTO kept_joins VALUES (?, ?)", changed)
                db.executemany("DELETE FROM kept_joins WHERE place = ?", gone)
