"""Whom the union follows: for each range, one owner, or the two tracks of a parallel move."""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.operators import Event
from thalweg.adapt.moves.query import Result
from thalweg.overlay.protocol import Address
from thalweg.plan.windows import FOREVER


class Track(msgspec.Struct):
    """One owner, who serves a range from `begin` until another does."""

    owner: Address
    epoch: int
    kind: str
    tau: int
    begin: int
    until: int
    frontier: int = 0  # read so far; not kept: what was not said is read again
    made: str = ""  # the first making of the range that this owner was heard with

    @property
    def complete(self) -> int:
        return FOREVER if self.frontier >= self.until else self.frontier


class Part(msgspec.Struct):
    epoch: int
    tracks: list[Track]
    rows: list[Result] = []  # that begin at `said` or later

    @property
    def frontier(self) -> int:
        return min((t.complete for t in self.tracks), default=0)


class Stored(msgspec.Struct):
    """The register, as it is kept."""

    said: int
    parts: list[tuple[int, int, int, list[Track]]]


decode_register = msgspec.msgpack.Decoder(Stored).decode
decode_events = msgspec.msgpack.Decoder(list[Event]).decode
