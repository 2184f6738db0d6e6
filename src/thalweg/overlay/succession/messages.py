"""What readers of fragments and homes of streams say to each other, and what is asked and told."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message


class Need(msgspec.Struct, frozen=True):
    """A stream that a fragment is made of, and the node that has it."""

    home: Address
    stream: str


# --- messages ---


class Keep(Message, frozen=True):
    """All that the sender may want to read again of the receiver's streams, and from which
    instants on. A later one, of a higher number, is all there is."""

    number: int
    streams: tuple[tuple[str, int], ...]


class Kept(Message, frozen=True):
    """It is written down that these are held."""

    number: int


MESSAGES = (Keep, Kept)


# --- requests ---


class Follow(msgspec.Struct, frozen=True):
    """This node reads a fragment, under a name of its own, of `publisher`; or reads it there from
    now on. Told by Following once all homes hold what it is made of; may be asked again."""

    key: str
    publisher: Address
    needs: tuple[Need, ...]
    reach: int | None  # how long the fragment remembers a tuple; None: it can't be made anew


class Unfollow(msgspec.Struct, frozen=True):
    key: str


class Reached(msgspec.Struct, frozen=True):
    """This node has, on its disk, all that the fragment says of instants below this one."""

    key: str
    instant: int


class Gone(msgspec.Struct, frozen=True):
    """A node is gone for good, says an operator: nobody waits for it."""

    address: Address


class Held(msgspec.Struct, frozen=True):
    """The home's engine has written a Hold down."""

    holder: Address
    number: int


# --- deliveries ---


class Hold(msgspec.Struct, frozen=True):
    """At a home: keep these streams for a reader from these instants on. To be answered by Held."""

    holder: Address
    number: int
    streams: tuple[tuple[str, int], ...]


class Following(msgspec.Struct, frozen=True):
    """All homes hold what a fragment is made of."""

    key: str


class TakeOver(msgspec.Struct, frozen=True):
    """At a reader: have the fragment computed elsewhere, from where this node has come. Said again
    until the fragment is read of another node, or its own is back. `is_gone`: for good."""

    key: str
    publisher: Address
    is_gone: bool
