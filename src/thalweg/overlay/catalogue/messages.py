"""What nodes say to each other about the catalogue, and what is asked of it and told by it."""

from __future__ import annotations

import msgspec

from thalweg.overlay.catalogue.entry import Entry, Key
from thalweg.overlay.catalogue.table import Mark
from thalweg.overlay.protocol import Address, Message

# --- messages ---


class News(Message, frozen=True):
    """What the sender, its owner, has just written; and a hash of its table with this."""

    entry: Entry
    table_hash: int


class Compare(Message, frozen=True):
    """The digest of a table; answered where the receiver's differs."""

    hashes: tuple[int, ...]


class Listing(Message, frozen=True):
    """All that the sender has in these buckets, by version."""

    buckets: tuple[int, ...]
    marks: tuple[Mark, ...]


class Give(Message, frozen=True):
    """What the receiver lacks; and what the sender wants of it in return."""

    entries: tuple[Entry, ...]
    wanted: tuple[Key, ...]


MESSAGES = (News, Compare, Listing, Give)


# --- requests ---


class Put(msgspec.Struct, frozen=True):
    """Define a name at this node, or change what this node defined under it.

    `kind` is checked when it is carried out. Answered in the same step: Changed, or Refused.
    """

    name: str
    kind: str
    text: str
    extra: bytes = b""


class Drop(msgspec.Struct, frozen=True):
    """End what this node defined under this name. Answered in the same step."""

    name: str


class Forget(msgspec.Struct, frozen=True):
    """A node is gone for good, says an operator: drop all that it defined. Refused while it is up.

    Should it come back after all, its definitions do too, as the latest of their names.
    """

    owner: Address


# --- deliveries ---


class Changed(msgspec.Struct, frozen=True):
    """An entry is new, different, or (a tombstone) gone; what it meant before is superseded.

    An own entry can change by itself: renamed, or learned again after a lost disk.
    """

    entry: Entry


class Refused(msgspec.Struct, frozen=True):
    name: str
    why: str
