"""Queries that stand still at an instant, because their state is about to be elsewhere, or is.

Ticks go on, but never cross that instant for them. One that is retired is not computed any more,
and remembers nothing; what it has said can be read. Durable: after a restart they stand still.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec

from thalweg.engine.shared.state.store import Store

_NOTE = "frozen"
_decode = msgspec.msgpack.Decoder(dict[str, int | None]).decode


class Frozen:
    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        note = store.note(_NOTE)
        self._at: dict[str, int | None] = {} if note is None else _decode(note)
        self.copied: set[str] = set()  # while they go on: until the next start

    def __contains__(self, query: str) -> bool:
        return query in self._at

    def __iter__(self) -> Iterator[str]:
        """Those that are not retired."""
        return iter(sorted(q for q, at in self._at.items() if at is None))

    @property
    def are_copied(self) -> bool:
        """Whether another node takes what some query remembers."""
        return bool(self.copied) or None in self._at.values()

    def retired_at(self, query: str) -> int | None:
        """The instant before which a query that is not computed any more has said everything."""
        return self._at.get(query)

    def add(self, query: str) -> None:
        with self._lock:
            self._write({query: None, **self._at})

    def retire(self, query: str, instant: int) -> None:
        with self._lock:
            self.copied.discard(query)
            self._write({**self._at, query: instant})

    def remove(self, query: str) -> None:
        with self._lock:
            self.copied.discard(query)
            self._write({q: at for q, at in self._at.items() if q != query})

    def _write(self, at: dict[str, int | None]) -> None:
        """A new one each time: ticks look at it meanwhile."""
        if at != self._at:
            self._store.write_note(_NOTE, msgspec.msgpack.encode(at))
            self._at = at
