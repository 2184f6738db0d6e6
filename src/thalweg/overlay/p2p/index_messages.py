"""What sources, owners and holders of copies say to each other, and what is asked of `index`."""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.register import Disk
from thalweg.overlay.p2p.tuples import Parts, Runs, Tup, Value
from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.query_table import Record

Place = tuple[int, str]  # a bucket, and the life of its owner's state


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tuple or an intermediate result on its way to a SteM; `number` is its origin's.

    `share` estimates how many of all its like there are: of an intermediate result, how complete
    the join was that made it.
    """

    number: int
    stem: str
    bucket: int
    parts: Parts
    share: float = 1.0


class Replay(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tuples sent once more, to make intermediate results of one level again in some buckets."""

    level: int
    runs: Runs


class Put(Message, frozen=True):
    """DHTJoin's Index message: along the ring, or straight to an owner that is known."""

    origin: Address
    items: tuple[Item, ...]
    queries: tuple[str, ...]  # that want them: who does not know one can't do its part
    versions: dict[str, int]  # of the streams' source lists, as the origin knows them
    done: dict[str, int]  # how far these queries have come: what ended before is not needed
    hops: int = 0
    replay: Replay | None = None
    guest_of: str = ""  # to a partner, for this sub-domain of the origin's
    store_only: bool = False  # it was joined before


class Done(Message, frozen=True):
    """Items have taken effect, and where: their buckets, and those of all that came of them."""

    items: tuple[tuple[int, tuple[Place, ...]], ...]
    host: str = ""  # a partner's, of its guest's items: the life of its node


class Unknown(Message, frozen=True):
    queries: tuple[str, ...]


class Teach(Message, frozen=True):
    records: tuple[Record, ...]


class Claim(Message, frozen=True):
    """An owner's, to those who speak for sources: count on nobody else for these buckets."""

    runs: Runs
    number: int
    life: str
    level: int  # 0: send what you retain of them; above: replay until this level is made again
    versions: dict[str, int]
    have: tuple[tuple[str, int], ...]  # sources of which this life has had this answer before


class Promised(Message, frozen=True):
    runs: Runs
    life: str
    number: int
    level: int
    sources: tuple[tuple[str, int], ...]  # for which it speaks: id, epoch
    versions: dict[str, int]
    items: tuple[Item, ...] = ()


class Refused(Message, frozen=True):
    """A higher number was promised to another, or the claim knows too few sources."""

    life: str
    number: int
    versions: dict[str, int]


class EventTime(msgspec.Struct, frozen=True):
    """A source's time goes on with its tuples, not with its node's clock: `lateness` instants
    behind the newest. Silent for `idle_us`, it lets the others go on."""

    lateness: int = 0
    idle_us: int | None = None


class Copy(Message, frozen=True):
    """Of a source's retained tuples, from `start` on; what is before `first` may go."""

    stream: str
    source: str
    epoch: int
    first: int
    start: int
    tuples: tuple[Tup, ...]
    time: EventTime | None = None
    newest: int = -1  # instant that the source has had a tuple of


class Copied(Message, frozen=True):
    """Has all up to and without `upto`, on this disk."""

    source: str
    epoch: int
    upto: int
    disk: Disk


class AskRoom(Message, frozen=True):
    """How much room have you? To those of the finger table, by one who is overloaded."""


class Room(Message, frozen=True):
    free: int


class Overloaded(Message, frozen=True):
    """A partner's, to the owner."""

    guest_of: str


class Pass(Message, frozen=True):
    """An owner's, to a partner: what you have of [low, high) goes to another. Until it is done."""

    guest_of: str
    low: int
    high: int
    to: Address
    as_guest_of: str


class Passed(Message, frozen=True):
    """It is there; all of it, if the partner and the next one have both had one life since."""

    as_guest_of: str
    host: str  # the partner's life
    next_hosts: tuple[str, ...]  # lives of the next one, as it answered


_OF_ITEMS = (Put, Done, Unknown, Teach)
_OF_CLAIMS = (Claim, Promised, Refused)
_OF_PARTNERS = (AskRoom, Room, Overloaded, Pass, Passed)
MESSAGES = (*_OF_ITEMS, *_OF_CLAIMS, Copy, Copied, *_OF_PARTNERS)


# --- requests ---


class Open(msgspec.Struct, frozen=True):
    """A source at this node; its id must be new in the whole network, for ever."""

    stream: str
    source: str
    time: EventTime | None = None


class Publish(msgspec.Struct, frozen=True):
    """Tuples of one source, stamped by this node's clock or, where given, by the application: all
    alike, or each by its own (`stamps`, of a source with event time). A `batch` that was taken
    before counts once."""

    source: str
    rows: tuple[tuple[Value, ...], ...]
    tag: int = 0
    ts: int | None = None
    stamps: tuple[int, ...] = ()
    batch: str = ""


class PromiseUpto(msgspec.Struct, frozen=True):
    """Nothing below the instant will come from this source: a heartbeat."""

    source: str
    instant: int


# --- deliveries ---


class Opened(msgspec.Struct, frozen=True):
    source: str


class Published(msgspec.Struct, frozen=True):
    """Stamped and on disk; a row that nobody needs has the number -1. They count once all before
    `upto` are accepted. Those in `late` (by their place in the request) are not taken."""

    source: str
    tag: int
    tuples: tuple[Tup, ...]
    upto: int = 0
    late: tuple[int, ...] = ()
    repeated: bool = False


class AcceptedUpto(msgspec.Struct, frozen=True):
    """All tuples before this number have as many copies as they need, and will take effect."""

    source: str
    seq: int


class NotPublished(msgspec.Struct, frozen=True):
    source: str
    tag: int
    why: str
    for_ever: bool = False  # to ask again is in vain


class TookOver(msgspec.Struct, frozen=True):
    """This node speaks for a lost source from now on; its tuples end before `upto`."""

    source: str
    epoch: int
    upto: int


class Superseded(msgspec.Struct, frozen=True):
    """Another speaks for this source now: what was not accepted is not in the stream."""

    source: str
    epoch: int
