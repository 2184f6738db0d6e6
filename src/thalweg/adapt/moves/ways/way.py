"""The common interface of the ways to move a range: PTLB, MSLB, pre-copy.

A way is the manager's side, a sequence of steps (D-CAPE's Algorithms 1 and 3), and the
processors' and splits' side, handlers of its messages (Algorithms 2 and 4). A step asks, and is
over when all that it asked have answered. Questions are repeated until then, so every handler
gives the same answer twice. Up to the decision (`decides`), which the sender writes down, a move
can end where it began; from then on it only goes forward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from thalweg.adapt.moves.directory import Directory
from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.messages.commands import (
    Aborted,
    ComputePartitionsToMove,
    Discard,
    PartitionsToMove,
    Reactivated,
    ReactivatePartitions,
)
from thalweg.adapt.moves.messages.data import Given
from thalweg.adapt.moves.messages.records import Move
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.overlay.protocol import Address, Effect, Message, Send

Asked = list[tuple[Address, Message]]


@dataclass(frozen=True, slots=True)
class Step:
    number: str  # in the source
    name: str
    ask: Callable[[Move, Directory], Asked]
    answer: type[Message]
    by: Callable[[Move, Directory], tuple[Address, ...]]
    learn: Callable[[Move, Any], Move] | None = None
    decides: bool = False
    waits: bool = False  # for the windows, not for an answer that is due


class Way(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def messages(self) -> tuple[type[Message], ...]: ...

    @property
    def steps(self) -> tuple[Step, ...]: ...

    def processor(
        self, processor: Processor, now_us: int, sender: Address, message: Message
    ) -> list[Effect]: ...

    def split(self, split: Split, sender: Address, message: Message) -> list[Effect]: ...


def sender_of(move: Move, directory: Directory) -> tuple[Address, ...]:
    return (move.sender,)


def receiver_of(move: Move, directory: Directory) -> tuple[Address, ...]:
    return (move.receiver,)


def splits_of(move: Move, directory: Directory) -> tuple[Address, ...]:
    return directory.split_nodes


# --- steps 1, 2: compute the partitions to move ---


def _ask_to_compute(move: Move, directory: Directory) -> Asked:
    lo, hi = move.lo, move.hi
    message = ComputePartitionsToMove(move.id, move.way, move.receiver, move.share, lo, hi)
    return [(move.sender, message)]


def _chosen(move: Move, answer: PartitionsToMove) -> Move:
    return msgspec.structs.replace(move, lo=answer.lo, hi=answer.hi, epoch=answer.epoch)


COMPUTE = Step("1, 2", "compute", _ask_to_compute, PartitionsToMove, sender_of, _chosen)


# --- the last step of MSLB and of pre-copy ---


def _reactivate(move: Move) -> ReactivatePartitions:
    m = move
    return ReactivatePartitions(m.id, m.lo, m.hi, m.receiver, m.tau, m.epoch + 1)


REACTIVATE_SENDER = Step(
    "8",
    "reactivate",
    lambda move, _: [(move.sender, _reactivate(move))],
    Reactivated,
    sender_of,
    decides=True,
)
REACTIVATE_OTHERS = Step(
    "8",
    "redirect",
    lambda move, d: [(a, _reactivate(move)) for a in (move.receiver, *d.split_nodes)],
    Reactivated,
    lambda move, d: (move.receiver, *d.split_nodes),
)


def reactivate(
    processor: Processor, now_us: int, sender: Address, message: ReactivatePartitions
) -> list[Effect]:
    """The sender decides; the receiver goes on from τ with the state that it was sent."""
    done = Send(sender, Reactivated(message.move))
    holding = processor.moving(message.move)
    if holding is not None:
        m = holding.meta
        asked = (message.lo, message.hi, message.epoch, message.tau)
        if asked != (m.lo, m.hi, m.epoch + 1, m.cap):
            return stale(processor, sender, message.move)
        given = Given(message.tau, message.receiver, message.epoch)
        return [*processor.give(holding, given), done]
    prepared = processor.prepared(message.move)
    if prepared is not None:
        prepared.wanted_us = now_us
        return [*processor.activate(prepared), done]
    known = message.move in processor.decided or message.receiver == processor.address
    return [done if known else Send(sender, Aborted(message.move))]


def stale(processor: Processor, sender: Address, move: str) -> list[Effect]:
    """The manager means another choice, from before a restart: decide nothing by its word."""
    return [*processor.undecided(move), Send(sender, Aborted(move))]


def redirect(split: Split, sender: Address, message: ReactivatePartitions) -> list[Effect]:
    split.route(message.lo, message.hi, Given(message.tau, message.receiver, message.epoch))
    return [Send(sender, Reactivated(message.move))]


def discard(processor: Processor, message: Discard) -> list[Effect]:
    effects = processor.arriving.forget(message.move)
    prepared = processor.prepared(message.move)
    if prepared is None or prepared.meta.active:
        return effects
    return [*effects, *processor.drop(prepared)]
