"""One entry of the catalogue, as its owner wrote it last.

Only the owner writes. Each write has a version above all that the owner has seen in the catalogue,
of whatever entry: versions are Lamport's clock, and so is `born`, the version with which the entry
began. Who has heard of an entry defines later ones with a higher `born`.

`disk` names the disk of the owner that this was written to. An owner that loses its disk starts to
count anew, and by this it tells its own words of old from its present ones.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from thalweg.overlay.protocol import Address

Kind = Literal["stream", "relation", "table", "view", "query", "sink", "node"]
KINDS: tuple[str, ...] = get_args(Kind)

Key = tuple[str, Address]  # name, owner


class Loss(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry gave way to an earlier one of its name, as that stood when it was heard of."""

    owner: Address  # of the earlier one
    born: int
    version: int  # with which it gave way

    def is_void(self, word: Entry) -> bool:
        """Whether the owner's word shows that it had dropped the earlier entry before it could
        know of this: news of partitions comes late, and nobody had taken the name."""
        if word.owner != self.owner:
            return False
        if word.born == self.born:
            return word.dropped and word.version < self.version
        return self.born < word.born < self.version


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    name: str
    kind: Kind
    text: str  # of its statement
    owner: Address
    version: int
    born: int
    disk: int
    extra: bytes = b""  # the application's own
    renamed: bool = False  # has lost its plain name to an earlier entry
    dropped: bool = False  # a tombstone: no text, no extra
    lost_to: Loss | None = None  # to whom it has lost it

    @property
    def key(self) -> Key:
        return self.name, self.owner

    @property
    def rank(self) -> tuple[int, int]:
        """Orders what the owner wrote; equal ranks are equal entries."""
        return self.version, self.disk

    @property
    def seniority(self) -> tuple[int, Address]:
        """Among entries of one name: who was first. No later write changes it."""
        return self.born, self.owner

    @property
    def is_grave(self) -> bool:
        return not self.name

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.owner}"


def next_version(entry: Entry, version: int) -> Entry:
    """The same content, written again."""
    return msgspec.structs.replace(entry, version=version)


def tombstone(entry: Entry, version: int, disk: int) -> Entry:
    return msgspec.structs.replace(
        entry, text="", extra=b"", version=version, disk=disk, dropped=True
    )


def grave(owner: Address, version: int) -> Entry:
    """Somebody says that a node is gone for good: what it wrote up to this version is dropped.

    The one thing that others write. Equal ranks are equal graves.
    """
    return Entry("", "node", "", owner, version, born=0, disk=0, dropped=True)
