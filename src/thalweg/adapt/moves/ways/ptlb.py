"""PTLB: sender and receiver run beside each other until all that is old is gone.

Source: D-CAPE (seed 002) 3, Algorithms 1 and 2. *Old* is a base timestamp below τ, the sender's
frontier when it decides; no plan needs to be known, nothing stops, no state travels. The sender
says results with an old part, the receiver those whose parts are all new; the union adds them
up. By intervals the last old part is gone at τ plus the longest window and slide, at any height
of the plan.

    step 1, 2  ComputePartitionsToMove → sender, PartitionsToMove ←
    step 3     DuplicatePartitions → sender, which decides τ; then → splits and receiver
    step 4     AllOldPurged ← sender
    step 5     DeletePartitions → sender and splits

The source flags tuples as new at the splits, and lets each split begin in its own time; here τ
is one instant, and every node can tell old from new by itself.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.directory import Directory
from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.messages.commands import Aborted, ComputePartitionsToMove, Refused
from thalweg.adapt.moves.messages.data import NEW, Given
from thalweg.adapt.moves.messages.records import Move
from thalweg.adapt.moves.operators import not_linear
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ranges import overlap
from thalweg.adapt.moves.ways.choosing import compute
from thalweg.adapt.moves.ways.way import (
    COMPUTE,
    Asked,
    Step,
    sender_of,
    splits_of,
    stale,
)
from thalweg.overlay.protocol import Address, Effect, Message, Send


class DuplicatePartitions(Message, frozen=True):
    """`tau` is −1 for the sender, who chooses it."""

    move: str
    lo: int
    hi: int
    receiver: Address
    epoch: int
    tau: int


class Duplicating(Message, frozen=True):
    """The sender has decided: from `tau` on there are two tracks."""

    move: str
    tau: int


class Duplicated(Message, frozen=True):
    move: str


class AskWhetherPurged(Message, frozen=True):
    move: str
    lo: int
    hi: int
    epoch: int


class AllOldPurged(Message, frozen=True):
    move: str


class DeletePartitions(Message, frozen=True):
    move: str
    lo: int
    hi: int
    epoch: int
    receiver: Address
    tau: int


class Deleted(Message, frozen=True):
    move: str


def _duplicate(move: Move, tau: int) -> DuplicatePartitions:
    return DuplicatePartitions(move.id, move.lo, move.hi, move.receiver, move.epoch + 1, tau)


def _to_all(move: Move, directory: Directory) -> Asked:
    message = _duplicate(move, move.tau)
    return [(a, message) for a in (move.receiver, *directory.split_nodes)]


def _delete(move: Move, directory: Directory) -> Asked:
    m = move
    message = DeletePartitions(m.id, m.lo, m.hi, m.epoch, m.receiver, m.tau)
    return [(a, message) for a in (m.sender, *directory.split_nodes)]


class Ptlb:
    name = "ptlb"
    messages = (
        DuplicatePartitions,
        Duplicating,
        Duplicated,
        AskWhetherPurged,
        AllOldPurged,
        DeletePartitions,
        Deleted,
    )
    steps = (
        COMPUTE,
        Step(
            "3",
            "duplicate",
            lambda move, _: [(move.sender, _duplicate(move, -1))],
            Duplicating,
            sender_of,
            lambda move, answer: msgspec.structs.replace(move, tau=answer.tau),
            decides=True,
        ),
        Step(
            "3",
            "duplicate at splits",
            _to_all,
            Duplicated,
            lambda move, d: (move.receiver, *splits_of(move, d)),
        ),
        Step(
            "4",
            "purge",
            lambda m, _: [(m.sender, AskWhetherPurged(m.id, m.lo, m.hi, m.epoch))],
            AllOldPurged,
            sender_of,
            waits=True,
        ),
        Step("5", "delete", _delete, Deleted, lambda move, d: (move.sender, *splits_of(move, d))),
    )

    def processor(
        self, processor: Processor, now_us: int, sender: Address, message: Message
    ) -> list[Effect]:
        if isinstance(message, ComputePartitionsToMove):
            operator = processor.query.below
            if operator is not None:
                return [Send(sender, Refused(message.move, not_linear(operator.name)))]
            return compute(processor, now_us, sender, message)
        if isinstance(message, DuplicatePartitions):
            if message.tau < 0:
                return self._decide(processor, sender, message)
            return self._start(processor, now_us, sender, message)
        if isinstance(message, AskWhetherPurged):
            purged = all(h.is_finished for h in _tracks(processor, message))
            return [Send(sender, AllOldPurged(message.move))] if purged else []
        if isinstance(message, DeletePartitions):
            effects: list[Effect] = []
            for holding in _tracks(processor, message):
                if holding.meta.acked >= holding.frontier:  # else once the union has said it all
                    effects += processor.drop(holding)
            return [*effects, Send(sender, Deleted(message.move))]
        return []

    def _decide(
        self, processor: Processor, sender: Address, message: DuplicatePartitions
    ) -> list[Effect]:
        if message.move in processor.decided:
            return [Send(sender, Duplicating(message.move, processor.decided[message.move].at))]
        holding = processor.moving(message.move)
        if holding is None:
            return [Send(sender, Aborted(message.move))]
        m = holding.meta
        if (message.lo, message.hi, message.epoch) != (m.lo, m.hi, m.epoch + 1):
            return stale(processor, sender, message.move)
        tau = max(holding.frontier, holding.meta.since)
        given = Given(tau, message.receiver, message.epoch, parallel=True)
        return [*processor.give(holding, given), Send(sender, Duplicating(message.move, tau))]

    def _start(
        self, processor: Processor, now_us: int, sender: Address, message: DuplicatePartitions
    ) -> list[Effect]:
        """The receiver: empty at τ."""
        effects: list[Effect] = []
        for holding in list(processor.holdings):
            same = holding.meta.epoch == message.epoch and not holding.meta.active
            if same and overlap(holding.range, (message.lo, message.hi)):
                effects += processor.drop(holding)  # prepared for a move that never was
        if not any(
            h.meta.epoch == message.epoch and overlap(h.range, (message.lo, message.hi))
            for h in processor.holdings
        ):
            tau = message.tau
            meta = Meta(message.lo, message.hi, message.epoch, NEW, tau, tau, tau)
            effects += processor.begin(now_us, meta)
        return [*effects, Send(sender, Duplicated(message.move))]

    def split(self, split: Split, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, DuplicatePartitions):
            given = Given(message.tau, message.receiver, message.epoch, parallel=True)
            split.route(message.lo, message.hi, given)
            return [Send(sender, Duplicated(message.move))]
        if isinstance(message, DeletePartitions):
            return [Send(sender, Deleted(message.move))]
        return []


def _tracks(processor: Processor, message: AskWhetherPurged | DeletePartitions) -> list[Holding]:
    return [
        h
        for h in processor.holdings
        if h.meta.epoch == message.epoch and message.lo <= h.meta.lo and h.meta.hi <= message.hi
    ]
