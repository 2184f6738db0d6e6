"""One put or get under way: look up the owners, read from all, and for a put write to all.

A put reads first, so that its version is above every version that it could meet.
"""

from __future__ import annotations

from collections.abc import Hashable

from thalweg.overlay.dht.messages import Item
from thalweg.overlay.protocol import Address


class Operation:
    __slots__ = ("answered", "attempts", "key", "newest", "owners", "tag", "value", "writing")

    def __init__(self, key: str, tag: Hashable, value: bytes | None) -> None:
        self.key = key
        self.tag = tag
        self.value = value  # None: a get
        self.attempts = 0
        self.owners: tuple[Address, ...] = ()
        self.writing = False
        self.answered: dict[Address, None] = {}
        self.newest: Item | None = None

    def begin(self, owners: tuple[Address, ...], *, writing: bool) -> None:
        """A new phase: who has to answer, and that nobody has."""
        self.owners = owners
        self.writing = writing
        self.answered = {}
        if not writing:
            self.newest = None

    def answer(self, sender: Address, item: Item | None) -> bool:
        """Note an answer down; whether it was the last one."""
        if item is not None and item.is_newer_than(self.newest):
            self.newest = item
        if sender in self.owners:
            self.answered[sender] = None
        return len(self.answered) == len(self.owners)

    def item_to_write(self, writer: Address) -> Item:
        assert self.value is not None
        version = 1 if self.newest is None else self.newest.version + 1
        return Item(version, writer, self.value)
