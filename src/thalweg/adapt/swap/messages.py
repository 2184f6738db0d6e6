"""What SwAP's sites say to each other, what they are asked, and what they deliver."""

from __future__ import annotations

import msgspec

from thalweg.adapt.swap.query import SwapQuery, Values
from thalweg.overlay.protocol import Message

Parts = tuple[tuple[int, Values], ...]  # (stream, its tuple), streams in order

SINK = -1  # as the target of a link: where results go


class Row(msgspec.Struct, frozen=True, array_like=True, tag="row", gc=False):
    """A tuple of a stream, or what was joined so far, valid in [start, end)."""

    number: int  # given where it was made
    start: int
    end: int
    footprint: int
    parts: Parts


class Closing(msgspec.Struct, frozen=True, array_like=True, tag="closing", gc=False):
    """The `-` of a row: it ends at this instant, or, if that is not after its start, never was."""

    number: int
    at: int


Entry = Row | Closing
Frontiers = tuple[tuple[int, int], ...]  # (footprint, all that starts or ends before it was said)


class Batch(Message, frozen=True):
    """Entries of a channel in order, from the `first` on; frontiers hold once all up to `needs`
    have come. Empty, it asks for an answer."""

    query: str
    source: int
    target: int
    first: int
    entries: tuple[Entry, ...]
    needs: int
    frontiers: Frontiers


class Taken(Message, frozen=True):
    """The answer: entries that are on disk, and room for rows, by the size of their footprint."""

    query: str
    source: int
    target: int
    upto: int
    room: tuple[int, ...]


class Returned(Message, frozen=True):
    """Virtual tuples: how many rows were made, in this life, of what this channel brought."""

    query: str
    source: int
    target: int
    life: int
    rows: int


# --- requests ---


class Run(msgspec.Struct, frozen=True):
    """Take part in this query, as one of its sites or as its sink."""

    query: SwapQuery


class Feed(msgspec.Struct, frozen=True):
    """New tuples of a stream that is delegated here: (key, instant, values), by ascending keys.

    All before `upto` has been said with it. Keys that came before are ignored, so that a feed can
    be repeated.
    """

    query: str
    stream: int
    tuples: tuple[tuple[int, int, Values], ...]
    upto: int


class End(msgspec.Struct, frozen=True):
    """The `-` of the tuple with this key, at an instant that is not final yet."""

    query: str
    stream: int
    key: int
    at: int


# --- deliveries ---


class Accepted(msgspec.Struct, frozen=True):
    """What was fed or ended is on disk and will have its effect; repeated tuples are left out."""

    request: Feed | End


class Final(msgspec.Struct, frozen=True):
    """The changelog of [since, upto): (instant, op, row) in printing order."""

    query: str
    since: int
    upto: int
    changes: tuple[tuple[int, str, Values], ...]


MESSAGES: tuple[type[Message], ...] = (Batch, Taken, Returned)
