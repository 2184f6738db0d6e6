"""What is read: rows, by processors from splits; results, by the union from processors.

Readers pull, from a position on; whoever is asked twice answers twice.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.query import Result, Row
from thalweg.overlay.protocol import Address, Message

FULL, OLD, NEW = "full", "old", "new"  # all results; those with an old part; those with none
GENERATION = 1 << 20  # a range that was lost goes on in the next generation of epochs


class Given(msgspec.Struct, frozen=True, array_like=True):
    """From `at` on the range is `owner`'s; if `parallel`, but for results with old parts."""

    at: int
    owner: Address
    epoch: int
    parallel: bool = False


# --- between processors and splits ---


class Read(msgspec.Struct, frozen=True, array_like=True):
    """One range: rows from `start` on, below `until`."""

    lo: int
    hi: int
    epoch: int
    beside: int  # the epoch beside which it may still read: its own, or that of its other track
    since: int  # from which instant on the reader is the range's owner
    parallel: bool  # of the results without old parts only
    start: int
    until: int


class ReadRows(Message, frozen=True):
    leaf: int
    reads: tuple[Read, ...]


class RowsOf(msgspec.Struct, frozen=True, array_like=True):
    """All rows of the range with timestamps in [start, upto)."""

    lo: int
    hi: int
    epoch: int
    start: int
    upto: int
    rows: tuple[Row, ...]
    ended: bool  # no more will come: D-CAPE's end-of-partition mark
    superseded: Given | None


class Rows(Message, frozen=True):
    leaf: int
    found: tuple[RowsOf, ...]


# --- between the union and processors ---


class Want(msgspec.Struct, frozen=True, array_like=True):
    """One range: results that begin at `start` or later."""

    lo: int
    hi: int
    epoch: int
    kind: str
    tau: int  # what divides old from new
    begin: int  # from where on this owner serves the range
    start: int
    made: str = ""  # which making of the range the union has registered


class ReadResults(Message, frozen=True):
    said: int  # results that begin before are no longer needed
    wants: tuple[Want, ...]


class ResultsOf(msgspec.Struct, frozen=True, array_like=True):
    """All results of the range that begin in [start, upto)."""

    lo: int
    hi: int
    epoch: int
    start: int
    upto: int
    rows: tuple[Result, ...]
    given: Given | None
    finished: bool  # an old track that has said all it will ever say
    made: str  # which making of the range says this


class Results(Message, frozen=True):
    found: tuple[ResultsOf, ...]


class Release(Message, frozen=True):
    """The union has said all instants for which it needs these: (lo, hi, epoch)."""

    ranges: tuple[tuple[int, int, int], ...]


class Said(Message, frozen=True):
    """The union to splits: what was valid only before is no longer needed."""

    upto: int
