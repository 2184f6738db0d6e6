"""The words of trees and their streams that several protocols use."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from thalweg.overlay.protocol import Address
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation, Tolerance


class Tree(msgspec.Struct, frozen=True, order=True):
    """What one tree carries: a stream, or an object of it, from its home."""

    home: Address
    stream: str


class Spec(msgspec.Struct, frozen=True):
    """A tolerance as messages carry it: `deviation`, `updates` or `age`, and how much."""

    kind: str
    amount: int

    def tolerance(self) -> Tolerance:
        match self.kind:
            case "deviation":
                return Deviation(self.amount)
            case "updates":
                return ChangesSince(self.amount)
            case "age":
                return Age(self.amount)
        raise ValueError(f"there is no tolerance {self.kind!r}")


class Line(msgspec.Struct, frozen=True, gc=False):
    """A row of a publication: when, what, and for which classes it is due."""

    at: int
    value: int
    classes: tuple[int, ...]


class Row(msgspec.Struct, frozen=True):
    """To the reader."""

    tree: Tree
    at: int
    value: int


class Batch(NamedTuple):
    classes: tuple[int, ...]
    start: int
    upto: int
    lines: tuple[Line, ...]


class Reader:
    """Somebody who subscribed."""

    __slots__ = ("classes", "heard_us", "sent", "start")

    def __init__(self, now_us: int, classes: tuple[int, ...], start: int) -> None:
        self.heard_us, self.classes = now_us, classes
        self.start = start  # all before it has been taken
        self.sent = start  # all before it is on its way
