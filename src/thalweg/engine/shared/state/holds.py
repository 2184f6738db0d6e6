"""What others may want to read of this site's streams once more, and from which instant on.

Who reads what another node computes may have to compute it anew one day: from where it has come,
less what the windows reach back. So it tells the homes of the streams, and they keep them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import msgspec

from thalweg.engine.shared.state.store import Store

_NOTE = "holds"
_decode = msgspec.msgpack.Decoder(dict[str, dict[str, int]]).decode


class Holds:
    """Durable: after a restart, what was held is held."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        note = store.note(_NOTE)
        self._held: dict[str, dict[str, int]] = {} if note is None else _decode(note)

    def write(self, holder: str, streams: Mapping[str, int]) -> None:
        """All that a holder holds: streams, and the instants from which on it may want them."""
        self.write_all({holder: streams})

    def write_all(self, holders: Mapping[str, Mapping[str, int]]) -> None:
        """Of several at once; who holds nothing any more is forgotten."""
        with self._lock:
            held = {**self._held, **{h: dict(s) for h, s in holders.items()}}
            held = {h: s for h, s in held.items() if s}
            if held != self._held:
                self._store.write_note(_NOTE, msgspec.msgpack.encode(held))
                self._held = held

    def holders(self) -> list[str]:
        return sorted(self._held)

    def of(self, holder: str) -> dict[str, int]:
        return dict(self._held.get(holder, {}))

    def least(self) -> dict[str, int]:
        """By stream: nothing from this instant on may go."""
        found: dict[str, int] = {}
        for streams in self._held.values():
            for stream, instant in streams.items():
                found[stream] = min(instant, found.get(stream, instant))
        return found
