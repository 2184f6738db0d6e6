"""What was moved from this node: by whom, why, how much, how long. For people."""

from __future__ import annotations

import threading
import time

import msgspec

from thalweg.engine.shared.state.store import Store
from thalweg.engine.site.status import instant_words
from thalweg.runtime.data.fragments import digest_of

REPLAY = "replay"  # no state is sent: it is computed anew from its inputs
ADVISED = "advised"
_NOTE = "moves"
_MOST = 100


class MoveRecord(msgspec.Struct, frozen=True):
    """`since` is the instant from which on the fragment runs at `to`; times are wall clocks'."""

    move: str
    publication: str
    fragment: str
    at: str
    to: str
    by: str
    epoch: int
    begun: float
    asked_by: str = ""
    why: str = ""
    state: str = "copying"  # frozen, done, failed; advised: another controller decides
    since: int | None = None
    total: int = 0  # bytes of state
    sent: int = 0
    frozen: float | None = None
    ended: float | None = None
    error: str | None = None
    until: int | None = None  # by PTLB: what has an old part is computed by the sender up to here
    resolution_us: int = 0  # of its instants, if they are dates and times; 0: they are numbers

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", ADVISED)

    @property
    def since_text(self) -> str | None:
        """For people."""
        if self.since is None:
            return None
        return instant_words(self.since, self.resolution_us or 1, self.resolution_us > 0)

    @property
    def stood_still_s(self) -> float | None:
        return None if self.frozen is None or self.ended is None else self.ended - self.frozen


_decode = msgspec.msgpack.Decoder(list[MoveRecord]).decode


class Journal:
    """The last hundred; durable. How much was sent is written down with the next step."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        note = store.note(_NOTE)
        self._records = {r.move: r for r in (_decode(note) if note is not None else [])}

    def all(self) -> list[MoveRecord]:
        with self._lock:
            return list(self._records.values())

    def find(self, move: str) -> MoveRecord | None:
        return self._records.get(move)

    def write(self, record: MoveRecord) -> None:
        with self._lock:
            self._records[record.move] = record
            self._records = dict(list(self._records.items())[-_MOST:])
            self._store.write_note(_NOTE, msgspec.msgpack.encode(list(self._records.values())))

    def advise(self, query: str, at: str, to: str, way: str, by: str, why: str) -> None:
        """What one who does not decide would move. Once, until it would move something else."""
        fragment = digest_of(query) or query
        old = [r for r in self.all() if r.state == ADVISED and r.asked_by == by]
        if old and (old[-1].fragment, old[-1].at, old[-1].to) == (fragment, at, to):
            return
        move, now = f"advice {at}.{self._store.take_numbers('moves', 1)}", time.time()
        how = move, query, fragment, at, to, way, 0, now, by, why, ADVISED
        self.write(MoveRecord(*how, ended=now))

    def change(self, move: str, **how: object) -> None:
        record = self._records.get(move)
        if record is not None and (new := msgspec.structs.replace(record, **how)) != record:
            self.write(new)

    def sent(self, move: str, size: int) -> None:
        with self._lock:
            record = self._records.get(move)
            if record is not None:
                self._records[move] = msgspec.structs.replace(record, sent=record.sent + size)
