"""The contract of every protocol between nodes: `step(now_us, event) -> [effects]`.

A protocol is a state machine without I/O. A driver (the simulator, or a live process) tells it what
happened, as an event, and carries out what it wants done, as effects. The law:

- Same state and same event give the same new state and the same effects. No clock but `now_us` (the
  node's own, which may be skewed), no randomness but what grows from Init's seed, no iteration over
  unordered sets.
- A message may be lost, doubled, late or out of order, and a node may stop at any moment; who needs
  an answer sets a timer.
- What must survive a restart goes through Persist, and comes back with Init. All else is lost.
- A protocol may *read* another of its own node, given to its constructor. To make it *do* something
  it returns a Tell; what a protocol Delivers is heard by those above that listen to it.

Messages are subclasses of Message, so that a live driver can encode them (msgspec) without knowing
them. Events and effects never leave their node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

import msgspec

Address = str  # names a node and says how to reach it; what it looks like is the driver's affair


class Message(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What one node says to another: `class Ping(Message, frozen=True)`.

    Fields hold plain values, tuples and other structs; integers fit into 64 bits.
    """


# --- events: what happened ----------------------------------------------------


class Init(msgspec.Struct, frozen=True):
    """The first event in a node's life, and again after each restart."""

    address: Address
    seed: int
    persisted: Mapping[str, bytes]  # what this protocol's Persist effects left behind


class Receive(msgspec.Struct, frozen=True, gc=False):
    sender: Address
    message: Message


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    key: Hashable


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request from above: the application, or another protocol's Tell."""

    request: object


class Heard(msgspec.Struct, frozen=True, gc=False):
    """Another protocol of this node, one that this one listens to, delivered a value."""

    source: str
    value: object


class Leave(msgspec.Struct, frozen=True, gc=False):
    """The node is about to go, on purpose: the last event; say goodbye."""


Event = Init | Receive | TimerFired | Call | Heard | Leave


# --- effects: what is to be done ------------------------------------------------


class Send(msgspec.Struct, frozen=True, gc=False):
    """To the protocol of the same name at another node (or at this one)."""

    to: Address
    message: Message


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Fire once, `after_us` from now; a timer of the same key is replaced."""

    key: Hashable
    after_us: int


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    key: Hashable


class Persist(msgspec.Struct, frozen=True, gc=False):
    """Durable before any Send of the same step leaves the node; None forgets the key."""

    key: str
    value: bytes | None


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A result: to the protocols that listen, and to the application."""

    value: object


class Tell(msgspec.Struct, frozen=True, gc=False):
    """A Call to another protocol of this node."""

    protocol: str
    request: object


Effect = Send | SetTimer | CancelTimer | Persist | Deliver | Tell


class NodeProtocol(Protocol):
    """The shape of a protocol; all but `step` are constants of its class."""

    @property
    def name(self) -> str:
        """Routes messages and timers: the same at every node, and no other in the stack."""

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """What it sends and understands."""

    @property
    def listens_to(self) -> tuple[str, ...]:
        """Names of the protocols whose deliveries it wants to hear."""

    def step(self, now_us: int, event: Event) -> list[Effect]:
        """Take in one event; say what is to be done."""
