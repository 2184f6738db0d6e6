"""Requests from above, and what is handed up."""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.operators import Values
from thalweg.adapt.moves.query import Row
from thalweg.overlay.protocol import Address


class Publish(msgspec.Struct, frozen=True):
    """To a split: a tuple of its stream, stamped with its home's time."""

    leaf: int
    key: int
    value: int


class Published(msgspec.Struct, frozen=True):
    leaf: int
    row: Row


class Assign(msgspec.Struct, frozen=True):
    """To the union, once: who starts with which buckets."""

    parts: tuple[tuple[int, int, Address], ...]


class Final(msgspec.Struct, frozen=True):
    """From the union: the changes of instants in [since, upto), in order."""

    since: int
    upto: int
    changes: tuple[tuple[int, str, Values], ...]


class Reshaped(msgspec.Struct, frozen=True):
    """From a processor: another shape from an instant on, and why."""

    lo: int
    hi: int
    before: str
    after: str
    at: int
    why: str


class Reshape(msgspec.Struct, frozen=True):
    """To a processor: another shape, as text, for what it has of these buckets."""

    lo: int
    hi: int
    shape: str
