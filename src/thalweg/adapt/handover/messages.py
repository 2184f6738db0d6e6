"""What the sender and the receiver of a fragment say to each other, and to their engines.

State itself is no message: the receiver's engine fetches it from the sender's, by pieces.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from thalweg.overlay.protocol import Address, Message

PRECOPY, STOP = "precopy", "stop"
MSLB, PTLB = "mslb", "ptlb"
WAYS = (PRECOPY, MSLB, PTLB, STOP)


class Step(StrEnum):
    """Of a move, at its sender."""

    COPYING = "copying"  # the receiver takes what there is, and the sender goes on
    FREEZING = "freezing"
    FROZEN = "frozen"  # the receiver takes the rest
    GIVEN = "given"  # decided: from τ on at the receiver
    KEPT = "kept"  # decided: it stays


# --- between nodes ---


class Offer(Message, frozen=True):
    """Take what there is of a fragment's state, while it goes on here."""

    move: str
    fragment: str
    epoch: int


class Copied(Message, frozen=True):
    move: str


class Finish(Message, frozen=True):
    """It stands still at `tau`: take the rest, and let it stand at your node."""

    move: str
    fragment: str
    epoch: int
    tau: int


class Taken(Message, frozen=True):
    """It stands here, durably."""

    move: str


class Busy(Message, frozen=True):
    """Still at work."""

    move: str


class Refused(Message, frozen=True):
    move: str
    why: str


class Settled(Message, frozen=True):
    """It is yours."""

    move: str


class Drop(Message, frozen=True):
    """It stays with the sender: forget it."""

    move: str


class Done(Message, frozen=True):
    """The receiver has heard how the move has ended."""

    move: str


MESSAGES = (Offer, Copied, Finish, Taken, Busy, Refused, Settled, Drop, Done)


# --- what a node is asked to do ---


class Give(msgspec.Struct, frozen=True):
    """Let a fragment of this node go on elsewhere. Its epoch there is `epoch`."""

    move: str
    fragment: str
    to: Address
    epoch: int
    way: str = PRECOPY


class Frozen(msgspec.Struct, frozen=True):
    """The engine of the sender: it stands still."""

    move: str
    tau: int


class CannotGive(msgspec.Struct, frozen=True):
    move: str
    why: str


class Fetched(msgspec.Struct, frozen=True):
    """The engine of the receiver: what there was is here."""

    move: str


class Adopted(msgspec.Struct, frozen=True):
    """It stands here, durably."""

    move: str


class CannotTake(msgspec.Struct, frozen=True):
    move: str
    why: str


class Gone(msgspec.Struct, frozen=True):
    """A node will not come back."""

    address: Address


class GoneOver(msgspec.Struct, frozen=True):
    """The engine of the sender: nobody reads it here any more."""

    move: str


# --- what an engine is told; it may be told again ---


class Freeze(msgspec.Struct, frozen=True):
    move: str
    fragment: str


class Fetch(msgspec.Struct, frozen=True):
    """Take what the sender has; with `tau` all of it, and let it stand here."""

    move: str
    fragment: str
    sender: Address
    epoch: int
    tau: int | None = None


class Discard(msgspec.Struct, frozen=True):
    """What was taken for a move is of no use."""

    move: str
    fragment: str
    epoch: int


class Ended(msgspec.Struct, frozen=True):
    """At the sender, how a move has ended: the record, as it is on disk. What is kept goes on."""

    giving: Giving


# --- what is on disk ---


class Giving(msgspec.Struct, frozen=True):
    """A move at its sender, the one writer of how it ends."""

    move: str
    fragment: str
    to: Address
    epoch: int
    way: str
    step: Step
    tau: int | None = None
    why: str | None = None  # it stays
    is_heard: bool = False  # the receiver knows how it has ended
    gone_over: bool = False


class Taking(msgspec.Struct, frozen=True):
    """A move at its receiver."""

    move: str
    fragment: str
    sender: Address
    epoch: int
    tau: int | None = None
    is_copied: bool = False
    is_taken: bool = False
