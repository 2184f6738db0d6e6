"""What is said about streams and their sources: between nodes, and inside one."""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.register import Ballot, Disk, Loss, Member, StreamState
from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.query_table import Record

# --- what clients ask of a stream's leader ---


class Register(msgspec.Struct, frozen=True, tag=True):
    source: str
    copied: bool  # nothing of it counts before it has copies


class Report(msgspec.Struct, frozen=True, tag=True):
    """A source's word: nothing of it is below `frontier` that has not taken effect."""

    source: str
    epoch: int
    frontier: int
    copies: tuple[Disk, ...]
    horizons: dict[str, int]
    turn: int = 0
    done: bool = False  # nothing is retained, and nothing will come: forget it
    is_idle: bool = False  # it would go on as far as somebody waits for
    rate: float = 0.0  # its tuples an instant, as measured; plans are made of it
    copies_since: int = 0  # the register's version that the copies before these were heard by


class Watch(msgspec.Struct, frozen=True, tag=True):
    """An asker's: how far has the stream come? `done` is how far the query has, `wanted` how far
    another of its streams is."""

    query: str
    done: int
    wanted: int = 0


class Look(msgspec.Struct, frozen=True, tag=True):
    """Anybody's: who are the sources, and how far are they?"""


Body = Register | Report | Watch | Look


# --- messages ---


class Ask(Message, frozen=True):
    """To the leader; by the ring where it is not known, and on from there."""

    stream: str
    client: Address
    body: Body
    hops: int = 0
    hinted: bool = False  # a member has sent it to who led last
    beyond: int = 0  # nodes past the ring's owner that it has come to


class Status(Message, frozen=True):
    """Of what is decided, from the leader."""

    stream: str
    frontier: int
    list_version: int
    sources: tuple[tuple[str, int, Address], ...]  # id, epoch, who speaks for it
    horizons: dict[str, int]
    done: dict[str, int]  # how far its queries have come
    copies: dict[str, tuple[Disk, ...]]  # of the client's own sources
    records: tuple[Record, ...] = ()  # queries that a new source has to know
    asleep: bool = False
    turns: dict[str, int] | None = None  # of the client's own sources
    wanted: int = 0  # how far somebody waits for this stream
    ends: dict[str, int] | None = None  # of sources that were passed on
    lost: dict[str, Loss] | None = None  # sources whose tuples nobody has any more
    rate: float = 0.0  # tuples an instant of all sources that were heard lately
    version: int = 0  # of the register: of two statuses the later one counts, whichever comes last
    members: tuple[Address, ...] = ()  # who keeps the register: if they fall silent, all wait


class Token(Message, frozen=True):
    """Who are you? Asked of those who are to become members."""

    stream: str
    answer: str | None = None


class Prepare(Message, frozen=True):
    stream: str
    to: str
    ballot: Ballot


class Prepared(Message, frozen=True):
    stream: str
    token: str
    ballot: Ballot
    accepted: Ballot
    state: StreamState


class Accept(Message, frozen=True):
    stream: str
    to: str
    ballot: Ballot
    state: StreamState


class Accepted(Message, frozen=True):
    stream: str
    token: str
    ballot: Ballot
    version: int


class Outbid(Message, frozen=True):
    stream: str
    ballot: Ballot


class Fence(Message, frozen=True):
    """To one who has copies of a source that is lost: take no more, and speak for it."""

    stream: str
    source: str
    epoch: int


class Fenced(Message, frozen=True):
    stream: str
    source: str
    epoch: int
    has_it: bool
    end: int = -1  # of its copies: the source's tuples from this number on don't count
    disk: Disk = ""  # where they are


MESSAGES = (Ask, Status, Token, Prepare, Prepared, Accept, Accepted, Outbid, Fence, Fenced)


# --- requests and deliveries inside a node ---


class CreateStream(msgspec.Struct, frozen=True):
    """Once for each stream, at any node: its first members are the ring's owners of its name."""

    stream: str


class AskStream(msgspec.Struct, frozen=True):
    stream: str
    body: Body


class NodesGone(msgspec.Struct, frozen=True):
    """A person's word, at every node: these will not come back, nor what is on their disks."""

    addresses: tuple[Address, ...]


class StreamGone(msgspec.Struct, frozen=True):
    """At every node, of `streams` and of `index`: a stream that nothing reads was dropped. Its name
    does not come back."""

    stream: str


class FenceAnswer(msgspec.Struct, frozen=True):
    """From `index`: whether it holds copies of the source, and takes no more of the old epoch."""

    leader: Address
    fenced: Fenced


class FenceCopy(msgspec.Struct, frozen=True):
    """To `index`."""

    leader: Address
    fence: Fence


class StreamCreated(msgspec.Struct, frozen=True):
    stream: str
    members: tuple[Member, ...]
