"""What the manager says in all ways, and what it is answered.

Messages have the names that D-CAPE gives them; those of one way stand in its own file. An owner
writes decisions down before it answers.
"""

from __future__ import annotations

from thalweg.adapt.moves.messages.data import ReadResults, ReadRows, Release, Results, Rows, Said
from thalweg.adapt.moves.messages.reports import Fence, Goodbye, Register, Report
from thalweg.overlay.protocol import Address, Message


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
