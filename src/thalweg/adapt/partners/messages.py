"""What partners, owners and homes say to each other; what the protocol is asked, and tells."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message


class Fragment(msgspec.Struct, frozen=True):
    """What moves as one: its home is the node that its stream is delegated to."""

    name: str
    home: Address
    neighbours: tuple[tuple[str, Address], ...] = ()  # up- and downstream, with their homes


# --- partners ---


class Propose(Message, frozen=True):
    load: float


class Accept(Message, frozen=True):
    load: float


class Reject(Message, frozen=True):
    load: float


class Part(Message, frozen=True):
    """We are no longer partners."""


class Load(Message, frozen=True):
    """To partners: when it has changed by κ, and once a round."""

    load: float


class Probe(Message, frozen=True):
    pass


class Probed(Message, frozen=True):
    load: float


# --- load ---


class Ask(Message, frozen=True):
    serial: int
    amount: float
    load: float
    native: bool = False  # only what is at home here
    why: str = ""  # as `requests.Wish` has it


class Offered(msgspec.Struct, frozen=True):
    fragment: str
    epoch: int
    load: float


class Offer(Message, frozen=True):
    serial: int
    fragments: tuple[Offered, ...]  # none: there is nothing that could go
    load: float  # of the giver, after this


class Consent(Message, frozen=True):
    """The giver may stop these; none: the offer comes too late."""

    serial: int
    fragments: tuple[str, ...]


class Ship(Message, frozen=True):
    """A fragment with its state, which holds all instants below `upto`."""

    fragment: Fragment
    epoch: int
    upto: int
    state: bytes
    load: float
    state_bytes: float
    why: str


class Shipped(Message, frozen=True):
    fragment: str
    epoch: int


# --- owners and homes ---


class Transfer(Message, frozen=True):
    """Owner to home: I have stopped at `upto`; from there on it is the receiver's."""

    fragment: str
    epoch: int  # the one that ends
    to: Address
    upto: int


class Transferred(Message, frozen=True):
    fragment: str
    epoch: int  # the one that begins


class Renew(Message, frozen=True):
    """Owner to home: I have these, and have said all below these instants."""

    entries: tuple[tuple[str, int, int], ...]  # fragment, epoch, upto
    stamp_us: int  # the owner's clock when it asked: its lease counts from there


class Lease(Message, frozen=True):
    entries: tuple[tuple[str, int], ...]  # fragment, epoch
    stamp_us: int
    places: tuple[tuple[str, Address], ...]  # neighbours that are not at home


class Stale(Message, frozen=True):
    """Home to a former owner: this epoch is over."""

    fragment: str
    epoch: int


class Located(Message, frozen=True):
    """Home to the homes of neighbours: where its fragments run."""

    entries: tuple[tuple[str, Address], ...]


class GiveBack(Message, frozen=True):
    """An owner that leaves, to the home: there is no time to extract a state."""

    fragment: str
    epoch: int
    upto: int


ALL: tuple[type[Message], ...] = (
    Propose,
    Accept,
    Reject,
    Part,
    Load,
    Probe,
    Probed,
    Ask,
    Offer,
    Consent,
    Ship,
    Shipped,
    Transfer,
    Transferred,
    Renew,
    Lease,
    Stale,
    Located,
    GiveBack,
)


# --- requests ---


class Delegate(msgspec.Struct, frozen=True):
    """These fragments' stream is delegated to this node; known ones stay where they are."""

    fragments: tuple[Fragment, ...]


class Measurement(msgspec.Struct, frozen=True):
    fragment: str
    load: float  # a share of this node's time in the window
    state_bytes: float
    upto: int


class Measured(msgspec.Struct, frozen=True):
    """The window τ is over: the whole load, what can't move included, and its parts."""

    load: float
    fragments: tuple[Measurement, ...] = ()


class Extracted(msgspec.Struct, frozen=True):
    """Answer to Stop: drained up to here, and this is what it remembers."""

    fragment: str
    epoch: int
    upto: int
    state: bytes


# --- deliveries ---


class Start(msgspec.Struct, frozen=True):
    """Run it from this instant on. Without a state its inputs are replayed."""

    fragment: str
    epoch: int
    upto: int
    state: bytes


class Stop(msgspec.Struct, frozen=True):
    """Say no instant more; drain, extract the state, and call Extracted."""

    fragment: str
    epoch: int


class Drop(msgspec.Struct, frozen=True):
    """Another has it by now: forget it with its state."""

    fragment: str
    epoch: int


class Moved(msgspec.Struct, frozen=True):
    """At the receiver: who gave what, and why."""

    fragment: str
    epoch: int
    giver: Address
    load: float
    why: str
