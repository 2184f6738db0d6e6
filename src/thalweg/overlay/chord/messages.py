"""What Chord's nodes say to each other, and what is asked of Chord and told by it."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from thalweg.overlay.protocol import Address, Message

# --- messages ---


class AskNeighbours(Message, frozen=True):
    token: int


class Neighbours(Message, frozen=True):
    token: int
    joined: bool  # a node that is not in the ring (any more) has no neighbours
    predecessor: Address | None
    successors: tuple[Address, ...]


class Notify(Message, frozen=True):
    """I am before you, I believe; and these come after me."""

    successors: tuple[Address, ...]


class Introduce(Message, frozen=True):
    """I should be your successor, and am not."""


class FindOwner(Message, frozen=True):
    token: int
    key: int


class Route(Message, frozen=True):
    """The key's owner and those after it, or nodes nearer to it; neither: not in the ring."""

    token: int
    owners: tuple[Address, ...]
    nearer: tuple[Address, ...]


class Leaving(Message, frozen=True):
    predecessor: Address | None
    successors: tuple[Address, ...]


MESSAGES = (AskNeighbours, Neighbours, Notify, Introduce, FindOwner, Route, Leaving)


# --- requests ---


class Create(msgspec.Struct, frozen=True):
    """Be the first node of a new ring. All others join through the members they know."""


class Lookup(msgspec.Struct, frozen=True):
    """Whose is this key? Answered by Found or NotFound with the same tag."""

    key: int
    tag: Hashable


# --- deliveries ---


class Joined(msgspec.Struct, frozen=True):
    """This node is in the ring from now on."""


class Found(msgspec.Struct, frozen=True):
    tag: Hashable
    key: int
    owners: tuple[Address, ...]  # the owner, then those after it
    hops: int  # nodes that had to be asked


class NotFound(msgspec.Struct, frozen=True):
    tag: Hashable
    key: int
