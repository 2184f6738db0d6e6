"""What the nodes say to each other about queries, what is asked of them, and what they tell."""

from __future__ import annotations

from math import inf

import msgspec

from thalweg.overlay.distribution.entries import Entry, Epoch, Query, Rate, Running
from thalweg.overlay.protocol import Address, Message

Claim = tuple[str, Epoch]  # of a query, by its name

# --- statistics, up and down the tree ---


class Report(Message, frozen=True):
    """Child to parent: what changed below me, from change `since` to change `until`."""

    life: int  # of the sender's memory: numbers of another life mean nothing
    since: int  # 0: this is all that there is
    until: int
    changed: tuple[Entry, ...]
    gone: tuple[str, ...]  # keys


class Noted(Message, frozen=True):
    """In answer: I have your changes up to this one."""

    life: int
    until: int


class Round(Message, frozen=True):
    """From the root down: adapt the cluster of this level; what load is fair, and all rates.

    What was decided above: which queries come to this cluster, and which leave it.
    """

    level: int
    fair: float  # load for each unit of capability
    cost: float  # what a unit of load pays, as the root sees it: against that gains are held
    rates: tuple[Rate, ...]
    coming: tuple[Running, ...] = ()
    leaving: tuple[str, ...] = ()


# --- where to, and who owns ---


class Seek(Message, frozen=True):
    """Down the tree, from the root or from a sibling's parent: which provider should have it?"""

    asker: Address
    token: int  # the asker's
    query: Query
    weight: float
    epoch: Epoch | None  # of an owner that is to Move it if it fits; None: it is new, asked for
    level: int  # of the cluster to choose from; NOT_YET: to the root first
    fair: float
    hops: int
    by: tuple[Address, ...] = ()  # the coordinators that have chosen so far, the root first


NOT_YET = 1 << 30


class Found(Message, frozen=True):
    token: int
    provider: Address
    by: tuple[Address, ...] = ()  # who has decided, the root first


class Move(Message, frozen=True):
    """Coordinator to owner: hand it over to that provider."""

    name: str
    epoch: Epoch
    to: Address


class Grant(Message, frozen=True):
    """The query is yours, in this epoch."""

    query: Query
    epoch: Epoch
    weight: float


class Took(Message, frozen=True):
    name: str
    epoch: Epoch


class Refused(Message, frozen=True):
    """This epoch of it is not taken: there was a higher one here, or (None) it was withdrawn."""

    name: str
    epoch: Epoch
    fence: Epoch | None
    is_over: bool = False  # whether the higher one has been here, and nobody runs it any more


class Superseded(Message, frozen=True):
    """Somebody has it in a higher epoch, or (None) it was withdrawn."""

    name: str
    epoch: Epoch | None


# --- leases: between owner and proxy ---


class Renew(Message, frozen=True):
    """Owner to proxy: I run these for you."""

    stamp_us: int  # the owner's clock
    claims: tuple[Claim, ...]


class Leased(Message, frozen=True):
    """In answer: deliver these, for the length of a lease after the stamp."""

    stamp_us: int
    claims: tuple[Claim, ...]
    unknown: tuple[str, ...]  # of which I have no record: tell me


class Entrust(Message, frozen=True):
    """To its proxy, or to a parent: look after this query, which ran in this epoch."""

    query: Query
    epoch: Epoch
    custody: int = 0  # the sender's number for an orphan; 0: it runs the query


class Entrusted(Message, frozen=True):
    """In answer: you may let go of what you handed over under this number."""

    name: str
    custody: int = 0


MESSAGES: tuple[type[Message], ...] = (
    Report,
    Noted,
    Round,
    Seek,
    Found,
    Move,
    Grant,
    Took,
    Refused,
    Superseded,
    Renew,
    Leased,
    Entrust,
    Entrusted,
)

# --- requests ---


class Submit(msgspec.Struct, frozen=True):
    """A query of a user at this node, its proxy."""

    title: str
    text: str
    substreams: tuple[int, ...]
    result_bps: float
    weight: float
    state_bytes: float = 0.0

    def __post_init__(self) -> None:
        for what in ("result_bps", "weight", "state_bytes"):
            _check(f"query {self.title}: its {what}", getattr(self, what))
        if len(set(self.substreams)) != len(self.substreams):
            raise ValueError(f"query {self.title}: a substream is listed twice")


class Withdraw(msgspec.Struct, frozen=True):
    name: str


class Measured(msgspec.Struct, frozen=True):
    """The load of queries that run here (COSMOS 3.3.8), and the rates of what enters here."""

    loads: tuple[tuple[str, float], ...] = ()
    rates_bps: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name, load in self.loads:
            _check(f"the load of {name}", load)
        for substream, bps in self.rates_bps:
            _check(f"the rate of substream {substream}", bps)


class SetCapability(msgspec.Struct, frozen=True):
    """0 before a departure: `Drained` tells when every query has another provider."""

    capability: float

    def __post_init__(self) -> None:
        _check("a capability", self.capability)


def _check(what: str, value: float) -> None:
    if not 0 <= value < inf:
        raise ValueError(f"{what} is {value}: it must be finite and can't be negative")


# --- deliveries ---


class Accepted(msgspec.Struct, frozen=True):
    """It will run, whatever stops: this node, its proxy, has it on disk."""

    title: str
    name: str


class Rejected(msgspec.Struct, frozen=True):
    """Of a request that makes no sense: why."""

    why: str


class Settled(msgspec.Struct, frozen=True):
    """At the proxy, whenever it is another one: who runs the query now."""

    name: str
    owner: Address
    by: tuple[Address, ...]  # the coordinators that sent it there; (): the owner before was told to


class Withdrawn(msgspec.Struct, frozen=True):
    name: str


class Started(msgspec.Struct, frozen=True):
    """To be run here; the application fetches its state from wherever it was."""

    query: Query
    epoch: Epoch


class Stopped(msgspec.Struct, frozen=True):
    name: str


class Drained(msgspec.Struct, frozen=True):
    pass
