"""What the nodes of the table say to each other, what is asked of it, and what it tells."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from thalweg.overlay.protocol import Address, Message


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value, and when it was put: a higher version is newer, the writer decides ties."""

    version: int
    writer: Address
    value: bytes

    def is_newer_than(self, other: Item | None) -> bool:
        return other is None or (self.version, self.writer) > (other.version, other.writer)


# --- messages ---


class Fetch(Message, frozen=True):
    token: int
    key: str


class Fetched(Message, frozen=True):
    token: int
    item: Item | None


class Store(Message, frozen=True):
    token: int
    key: str
    item: Item


class Stored(Message, frozen=True):
    token: int


class Offer(Message, frozen=True):
    """I have these; have you?"""

    versions: tuple[tuple[str, int, Address], ...]  # key, version, writer


class Answer(Message, frozen=True):
    """Of what you offer I have these (or newer, and here they are), and want those."""

    have: tuple[str, ...]
    newer: tuple[tuple[str, Item], ...]
    want: tuple[str, ...]


class Hand(Message, frozen=True):
    items: tuple[tuple[str, Item], ...]


MESSAGES = (Fetch, Fetched, Store, Stored, Offer, Answer, Hand)


# --- requests ---


class Put(msgspec.Struct, frozen=True):
    key: str
    value: bytes
    tag: Hashable


class Get(msgspec.Struct, frozen=True):
    key: str
    tag: Hashable


# --- deliveries ---


class PutDone(msgspec.Struct, frozen=True):
    """The value is with the owner and all its substitutes."""

    tag: Hashable


class Got(msgspec.Struct, frozen=True):
    tag: Hashable
    value: bytes | None  # None: nobody has put anything there


class Failed(msgspec.Struct, frozen=True):
    """Nobody to be reached, or (of a put) not all: it may or may not have been stored."""

    tag: Hashable
