"""What splits, processors, the union and the distribution manager say to each other.

Two kinds. *Data*: readers pull, from a position on; whoever is asked twice answers twice.
*Moves*: the messages of the three ways have the names that D-CAPE gives them, and stand in the
ways' own files, but for those that all ways share. An owner writes decisions down before it
answers.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.operators import Values
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


# --- what the manager hears ---


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


# --- shared by all ways ---


class ComputePartitionsToMove(Message, frozen=True):
    """Step 1. Choose buckets with about `share` of your load; or these, if they are named."""

    move: str
    way: str
    receiver: Address
    share: float
    lo: int = -1
    hi: int = -1


class PartitionsToMove(Message, frozen=True):
    """Step 2."""

    move: str
    lo: int
    hi: int
    epoch: int


class Refused(Message, frozen=True):
    """The sender or the receiver can't; the move ends where it began."""

    move: str
    why: str


class Abort(Message, frozen=True):
    """The manager has waited too long; the sender says how the move ended."""

    move: str


class Aborted(Message, frozen=True):
    move: str


class Discard(Message, frozen=True):
    """To a receiver: what you were sent for this move is not needed."""

    move: str


class ReactivatePartitions(Message, frozen=True):
    """The last step of MSLB and of pre-copy: to the sender, who writes it down; then to all."""

    move: str
    lo: int
    hi: int
    receiver: Address
    tau: int
    epoch: int


class Reactivated(Message, frozen=True):
    move: str


SHARED = (
    ReadRows,
    Rows,
    ReadResults,
    Results,
    Release,
    Said,
    Report,
    Goodbye,
    Register,
    Fence,
    ComputePartitionsToMove,
    PartitionsToMove,
    Refused,
    Abort,
    Aborted,
    Discard,
    ReactivatePartitions,
    Reactivated,
)


# --- requests from above ---


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
