"""What the manager hears: loads of processors, whom the union follows, who is lost."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message


class Load(msgspec.Struct, frozen=True, array_like=True):
    lo: int
    hi: int
    epoch: int
    movable: bool
    rate: int  # work in the last period
    tuples: int


class HotKey(msgspec.Struct, frozen=True, array_like=True):
    """A key that has much of a node's rows: no cut divides it."""

    key: int
    rows: int
    of: int

    def text(self) -> str:
        return f"key {self.key} has {self.rows} of {self.of} rows here"


class Report(Message, frozen=True):
    """A processor's: what it has, and what that costs."""

    loads: tuple[Load, ...]
    version: str
    hottest: HotKey | None = None


class Goodbye(Message, frozen=True):
    """A processor that leaves on purpose."""


class Followed(msgspec.Struct, frozen=True, array_like=True):
    lo: int
    hi: int
    epoch: int
    owners: tuple[Address, ...]


class Register(Message, frozen=True):
    """The union's: whom it follows for each range."""

    parts: tuple[Followed, ...]


class Fence(Message, frozen=True):
    """To the union: the owner of this range in this epoch is lost; go on with another."""

    lo: int
    hi: int
    epoch: int
    owner: Address
