"""A split: the home of one input, which gives each processor the rows of its buckets.

Source: D-CAPE 1.1, 3.2, 4.2. A split stamps tuples, makes them durable, and serves whoever
reads, from a position on; its mapping table says for each bucket which owner it last served, and
since when. A reader of an earlier epoch gets what is below that instant and an end-of-partition
mark. While a range is deactivated (MSLB), what comes at or after τ waits here: the log is the
buffer.

Promise: what it has said about an instant never changes; nothing is stamped below a frontier
that it has sent. Both survive a restart.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.messages.data import Given, Read, ReadRows, Rows, RowsOf
from thalweg.adapt.moves.messages.requests import Publish, Published
from thalweg.adapt.moves.query import Query, Row, bucket_of
from thalweg.adapt.moves.ranges import RangeMap
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send
from thalweg.plan.windows import FOREVER

MOST_ROWS = 400  # of a range in one answer
PAGE = 64  # instants of the log that are stored together

_encode = msgspec.msgpack.Encoder().encode
_decode_rows = msgspec.msgpack.Decoder(list[Row]).decode
_decode_state = msgspec.msgpack.Decoder(tuple[int, int]).decode


class Hold(msgspec.Struct, frozen=True):
    move: str
    epoch: int
    at: int


class Split:
    def __init__(self, query: Query, leaf: int, instant_us: int) -> None:
        self.leaf = leaf
        self.upto = 0  # what was said to be complete
        self.sent_twice = 0  # rows that went to a second reader of the same bucket
        self._query = query
        self._instant_us = instant_us
        self._position = 0
        self._pages: dict[int, list[Row]] = {}
        self._routes: RangeMap[Given] = RangeMap(
            query.buckets, Given(0, "", -1), lambda g, _a, _b: (g, g)
        )
        self.holds: dict[tuple[int, int], Hold] = {}

    def restore(self, persisted: dict[str, bytes]) -> None:
        for key, value in persisted.items():
            if key == self._key("state"):
                self.upto, self._position = _decode_state(value)
            elif key.startswith(self._key("page/")):
                self._pages[int(key.rpartition("/")[2])] = _decode_rows(value)
        for page in self._pages.values():  # written before the state was
            self._position = max([self._position, *[row[1] + 1 for row in page]])
            self.upto = max([self.upto, *[row[0] for row in page]])

    def advance(self, now_us: int) -> list[Effect]:
        """Silence is said: whatever comes later is stamped later."""
        now = now_us // self._instant_us
        if now <= self.upto:
            return []
        self.upto = now
        return [Persist(self._key("state"), _encode((self.upto, self._position)))]

    def publish(self, now_us: int, request: Publish) -> list[Effect]:
        row = (max(self.upto, now_us // self._instant_us), self._position, request.key)
        full: Row = (*row, request.value)
        self._position += 1
        number = full[0] // PAGE
        page = self._pages.setdefault(number, [])
        page.append(full)
        return [
            Persist(self._key(f"page/{number}"), _encode(page)),
            Deliver(Published(self.leaf, full)),
        ]

    def forget(self, upto: int) -> list[Effect]:
        """Rows whose pages no reader can need again."""
        least = upto - self._query.longest
        gone = [number for number in self._pages if (number + 1) * PAGE <= least]
        for number in gone:
            del self._pages[number]
        return [Persist(self._key(f"page/{number}"), None) for number in gone]

    # --- readers ---

    def read(self, now_us: int, sender: Address, message: ReadRows) -> list[Effect]:
        effects = self.advance(now_us)
        found = tuple([rows for read in message.reads for rows in self._rows_of(sender, read)])
        return [*effects, Send(sender, Rows(self.leaf, found))] if found else effects

    def _rows_of(self, sender: Address, read: Read) -> list[RowsOf]:
        found = []
        for lo, hi, known in self._routes.within(read.lo, read.hi):
            superseded = known if known.epoch > read.beside else None
            if read.epoch > known.epoch:
                given = Given(read.since, sender, read.epoch, read.parallel)
                self._routes.set(lo, hi, given)
            elif read.epoch < known.epoch and superseded is None:
                self.sent_twice += 1
            end = min(self.upto, read.until, superseded.at if superseded else FOREVER)
            held = self._held(lo, hi, read)
            end = min(end, held)
            rows, upto = self._between(lo, hi, read.start, max(end, read.start))
            limits = [read.until, held] + ([superseded.at] if superseded else [])
            ended = upto >= min(limits)
            found.append(
                RowsOf(lo, hi, read.epoch, read.start, upto, tuple(rows), ended, superseded)
            )
        return found

    def _held(self, lo: int, hi: int, read: Read) -> int:
        """Up to where a deactivated range is served; a reader that goes on lifts the hold."""
        least = FOREVER
        for (a, b), hold in list(self.holds.items()):
            if a < hi and lo < b:
                if read.epoch > hold.epoch or read.until > hold.at:
                    del self.holds[a, b]
                else:
                    least = min(least, hold.at)
        return least

    def _between(self, lo: int, hi: int, start: int, upto: int) -> tuple[list[Row], int]:
        rows: list[Row] = []
        for number in range(start // PAGE, (upto - 1) // PAGE + 1):
            for row in self._pages.get(number, ()):
                if start <= row[0] < upto and lo <= bucket_of(row[2], self._query.buckets) < hi:
                    if len(rows) >= MOST_ROWS and row[0] > rows[-1][0]:
                        return rows, row[0]  # whole instants only
                    rows.append(row)
        return rows, upto

    # --- moves: called by the ways ---

    def hold(self, move: str, lo: int, hi: int, epoch: int, at: int) -> None:
        self.holds[lo, hi] = Hold(move, epoch, at)

    def route(self, lo: int, hi: int, given: Given) -> None:
        """From an instant on these buckets go to another owner."""
        for a, b, known in self._routes.within(lo, hi):
            if given.epoch > known.epoch:
                self._routes.set(a, b, given)
        self.holds = {
            r: h for r, h in self.holds.items() if h.epoch >= given.epoch or r != (lo, hi)
        }

    def _key(self, name: str) -> str:
        return f"split/{self.leaf}/{name}"
