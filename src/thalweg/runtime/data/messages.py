"""What a reader and a publisher say to each other; rows go beside it, as Arrow batches.

Every request may be repeated: a reader that has heard nothing asks again.
"""

from __future__ import annotations

import msgspec

from thalweg.engine.shared.registering import Past
from thalweg.runtime.data.fragments import Fragment


class Open(msgspec.Struct, frozen=True, tag=True):
    """Keep a stream for a reader, with so many instants of its past (None: all). Only rows that
    fulfil one of the conditions are sent (None: all of them). It begins now, or at `since`."""

    stream: str
    reader: str
    number: int
    reach: int | None
    where: tuple[str, ...] | None = None
    since: int | None = None


class Opened(msgspec.Struct, frozen=True, tag=True):
    publication: str
    watermark: int
    complete_from: int

    @property
    def past(self) -> Past:
        return Past(self.watermark, self.complete_from)


class OpenFragment(msgspec.Struct, frozen=True, tag=True):
    """Compute a fragment for a reader. `complete`: only if its windows begin with all that they
    ask for. It begins now, or at `since`: then it may read nothing but streams."""

    fragment: Fragment
    reader: str
    number: int
    complete: bool = False
    since: int | None = None


class Move(msgspec.Struct, frozen=True, tag=True):
    """From who computes a fragment to who reads it: have it computed at another node."""

    publication: str
    publisher: str
    fragment: Fragment
    to: str


class Acknowledge(msgspec.Struct, frozen=True, tag=True):
    """Rows below this instant are not needed any more. `held_up_at` is the instant for which the
    reader waits, if it does: a silent home answers with a promise."""

    publication: str
    needed_from: int
    held_up_at: int | None = None


class Close(msgspec.Struct, frozen=True, tag=True):
    publication: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """There is nothing to say."""


class Read(msgspec.Struct, frozen=True, tag=True):
    """A ticket: a publication's rows from an instant on, and what follows."""

    publication: str
    since: int


class Range(msgspec.Struct, frozen=True, tag=True):
    """Beside a batch: it has all rows of the instants [low, upto)."""

    low: int
    upto: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why a request can't be answered; `later`: not now. Otherwise asking again is of no use."""

    reason: str
    later: bool = False


Request = Open | OpenFragment | Move | Acknowledge | Close
Answer = Opened | Done | Refused

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
decode_ticket = msgspec.msgpack.Decoder(Read).decode
decode_range = msgspec.msgpack.Decoder(Range).decode
