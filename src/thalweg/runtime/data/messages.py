"""What a reader and a publisher say to each other; rows go beside it, as Arrow batches.

Every request may be repeated: a reader that has heard nothing asks again.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.balancing.fragments import NodeLoad
from thalweg.engine.shared.registering import Past
from thalweg.engine.site.delays import Took
from thalweg.runtime.data.fragments import Fragment


class Open(msgspec.Struct, frozen=True, tag=True):
    """Keep a stream for a reader, with so many instants of its past (None: all). Only rows that
    fulfil one of the conditions are sent, and of these only some columns (None: all of them). It
    begins now, or at `since`. If it is `held`, the publisher keeps the stream itself, too, from
    where the reader and all who read from that one are: so that each of them may ask here, should
    those in between be gone."""

    stream: str
    reader: str
    number: int
    reach: int | None
    where: tuple[str, ...] | None = None
    since: int | None = None
    held: bool = False
    held_from: int | None = None  # None: from where it begins
    columns: tuple[str, ...] | None = None


class Label(msgspec.Struct, frozen=True, tag=True):
    """To a stream's home: label its rows with the tolerance classes (each a plan) for which they
    are due. A class that has not started yet starts; a reader that reaches back so far (None: to
    the beginning), in these columns, is to find what it holds."""

    stream: str
    reader: str
    classes: tuple[bytes, ...]
    reach: int | None
    columns: tuple[str, ...]


class LabelledAs(msgspec.Struct, frozen=True, tag=True):
    """The numbers by which labels name the classes, in their order."""

    numbers: tuple[int, ...]


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


class Continue(msgspec.Struct, frozen=True, tag=True):
    """One more reader of a publication: it has all that was said before `since`."""

    publication: str
    reader: str
    number: int
    since: int


class Describe(msgspec.Struct, frozen=True, tag=True):
    """From who takes a fragment to who gives it: what it is, and what it remembers."""

    move: str
    receiver: str


class Described(msgspec.Struct, frozen=True, tag=True):
    """`handed` is what `runtime/network/fragments/handing.py` makes of it."""

    handed: bytes


class DescribeCopy(msgspec.Struct, frozen=True, tag=True):
    """From who reads a fragment: what does it remember? A copy is kept at the reader."""

    publication: str


class OpenTrack(msgspec.Struct, frozen=True, tag=True):
    """From who takes a fragment by PTLB to who gives it: go on with what has an old part."""

    move: str
    receiver: str
    number: int


class Weigh(msgspec.Struct, frozen=True, tag=True):
    """From the balancer's node: what does each fragment cost you?"""

    manager: str


class Weighed(msgspec.Struct, frozen=True, tag=True):
    load: NodeLoad


class Shift(msgspec.Struct, frozen=True, tag=True):
    """Move a fragment: who decides so, and at which node."""

    publication: str
    manager: str
    to: str
    way: str
    why: str
    by: str = "balancer"


class Hang(msgspec.Struct, frozen=True, tag=True):
    """To a stream's home: from whom shall this reader have it? With what it has measured, so that
    the home can tell (`runtime/network/trees/choosing.py`). `publishers` are all whom it reads, and
    is about to; `to`, one whom it asks leave to read. What has a lower `serial` is old."""

    stream: str
    reader: str
    serial: int
    publishers: tuple[str, ...]
    delays_ms: dict[str, float]
    rows_per_s: float
    row_ms: float
    to: str | None = None
    hop_ms: float = 0.0  # that rows wait there before they can be passed on

    @property
    def parent(self) -> str:
        return self.publishers[-1]


class Hung(msgspec.Struct, frozen=True, tag=True):
    """Where it would hang best (nothing: where it is), and whether it may read whom it has asked
    for."""

    parent: str
    granted: bool = False


class Carry(msgspec.Struct, frozen=True, tag=True):
    """To a node that only passes on: be ready to hand this stream to a reader, for a while."""

    stream: str
    reader: str


class Measure(msgspec.Struct, frozen=True, tag=True):
    """What does a planner want to know of this node?"""

    reader: str


class Measures(msgspec.Struct, frozen=True, tag=True):
    """`told` is a NodeMeasure (`runtime/network/measuring.py`)."""

    told: bytes


class Heard(msgspec.Struct, frozen=True, tag=True):
    """To a home: how have these streams gone on, since these moments of its own clock?"""

    reader: str
    streams: dict[str, float]


class Reached(msgspec.Struct, frozen=True, tag=True):
    """When this was said, and up to which instant each stream had come when."""

    now_s: float
    heads: dict[str, list[tuple[float, int]]]


class Acknowledge(msgspec.Struct, frozen=True, tag=True):
    """Rows below this instant are not needed any more. `held_up_at` is the instant for which the
    reader waits, if it does: a silent home answers with a promise. From `held_from` on, the reader
    or somebody below it may have to ask for the stream again."""

    publication: str
    needed_from: int
    held_up_at: int | None = None
    held_from: int | None = None


class Close(msgspec.Struct, frozen=True, tag=True):
    publication: str


class MovedTo(msgspec.Struct, frozen=True, tag=True):
    """Behind all rows before `since`: from there on the publication is another node's. Also the
    answer to a reader that closes it: it may have to be closed there, too."""

    since: int
    at: str
    publication: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """There is nothing to say."""


class Read(msgspec.Struct, frozen=True, tag=True):
    """A ticket: a publication's rows from an instant on, and what follows."""

    publication: str
    since: int


class Pieces(msgspec.Struct, frozen=True, tag=True):
    """A ticket: pieces of a fragment's state (bundle, offset, size), one after the other."""

    move: str
    receiver: str
    wanted: tuple[tuple[str, int, int], ...]


class Range(msgspec.Struct, frozen=True, tag=True):
    """Beside a batch: it has all rows of the instants [low, upto), which have taken so long."""

    low: int
    upto: int
    took: Took | None = None


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why a request can't be answered; `later`: not now. Otherwise asking again is of no use."""

    reason: str
    later: bool = False


Asked = (
    Open
    | Label
    | OpenFragment
    | OpenTrack
    | Move
    | Continue
    | Describe
    | DescribeCopy
    | Measure
    | Weigh
    | Shift
    | Hang
    | Carry
)
Request = Asked | Heard | Acknowledge | Close
Answer = (
    Opened | LabelledAs | Described | Measures | Weighed | MovedTo | Hung | Reached | Done | Refused
)

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
decode_ticket = msgspec.msgpack.Decoder(Read | Pieces).decode
decode_range = msgspec.msgpack.Decoder(Range | MovedTo).decode
