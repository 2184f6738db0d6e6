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


class Start(Message, frozen=True):
    """From the sink: take part in this query. It is said until the site has begun, and to one that
    has begun never again: if it has lost its disk, it must not begin anew."""

    query: SwapQuery


class Runs(Message, frozen=True):
    """To the sink, again and again: the query runs here, and the streams that are delegated here
    were fed up to these instants."""

    query: str
    fed: tuple[tuple[int, int], ...]


class Awaited(Message, frozen=True):
    """From the sink: the other streams have come so far, and wait for these."""

    query: str
    upto: tuple[tuple[int, int], ...]


class Ends(Message, frozen=True):
    """From the sink: there is no such query any more."""

    query: str


# --- requests ---


class Submit(msgspec.Struct, frozen=True):
    """To the sink: all sites of this query are to take part, until it is dropped."""

    query: SwapQuery


class Took(msgspec.Struct, frozen=True):
    """To the sink: what is final below this instant need not be kept any more."""

    query: str
    upto: int


class Demand(msgspec.Struct, frozen=True):
    """To the sink: somebody waits for results up to this instant."""

    query: str
    upto: int


class Drop(msgspec.Struct, frozen=True):
    """To the sink: the query ends, at all sites."""

    query: str


class SinkGone(msgspec.Struct, frozen=True):
    """Queries of a sink that will not come back end here."""

    sink: str


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


class Began(msgspec.Struct, frozen=True):
    """A query runs here from now on."""

    query: str


class Ended(msgspec.Struct, frozen=True):
    """A query does not run here any more."""

    query: str


class NotRunning(msgspec.Struct, frozen=True):
    """What was asked is of a query that does not run here."""

    query: str


class Accepted(msgspec.Struct, frozen=True):
    """What was fed or ended is on disk and will have its effect; repeated tuples are left out."""

    request: Feed | End


class Final(msgspec.Struct, frozen=True):
    """The changelog of [since, upto): (instant, op, row) in printing order."""

    query: str
    since: int
    upto: int
    changes: tuple[tuple[int, str, Values], ...]


MESSAGES: tuple[type[Message], ...] = (Batch, Taken, Returned, Start, Runs, Awaited, Ends)
