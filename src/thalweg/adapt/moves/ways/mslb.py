"""MSLB: stop the range at τ, send its state, match it to the receiver's plan, go on there.

Source: D-CAPE (seed 002) 4, Algorithms 3 and 4.

    step 1, 2  ComputePartitionsToMove → sender, PartitionsToMove ←
    step 3     DeactivatePartitions → sender, which names τ; then → splits, which keep what comes
               from τ on, and mark the end of what the sender gets
    step 4     Deactivated ← splits; ← sender, once it has drained: all marks came, all below τ is
               said
    step 5     SendPartitions → sender
    step 6     ReceivePartitions (a manifest and its segments), sender → receiver
    step 7     Received ← receiver: states that match are inserted, others discarded, what is
               missing recomputed from the bottom to the top
    step 8     ReactivatePartitions → sender, which decides; then → receiver and splits

τ is the highest instant up to which any split has already sent rows, so that nothing is sent
again. The source has no step 8 at the sender: there the manager's word is the decision, and dies
with it.
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.directory import Directory
from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.messages.commands import (
    ReactivatePartitions,
)
from thalweg.adapt.moves.messages.records import Move
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ways.receiving import (
    Received,
    answer_unknown_move,
    freeze,
    handle_common,
    send_manifest,
)
from thalweg.adapt.moves.ways.way import (
    COMPUTE,
    REACTIVATE_OTHERS,
    REACTIVATE_SENDER,
    Asked,
    Step,
    receiver_of,
    redirect,
    sender_of,
    stale,
)
from thalweg.overlay.protocol import Address, Effect, Message, Send


class DeactivatePartitions(Message, frozen=True):
    """`tau` is −1 until the sender has named it."""

    move: str
    lo: int
    hi: int
    epoch: int
    tau: int


class Deactivating(Message, frozen=True):
    move: str
    tau: int


class Deactivated(Message, frozen=True):
    move: str


class SendPartitions(Message, frozen=True):
    move: str


def _deactivate(move: Move) -> DeactivatePartitions:
    return DeactivatePartitions(move.id, move.lo, move.hi, move.epoch, move.tau)


def _drain(move: Move, directory: Directory) -> Asked:
    return [(a, _deactivate(move)) for a in (move.sender, *directory.split_nodes)]


class Mslb:
    name = "mslb"
    messages = (DeactivatePartitions, Deactivating, Deactivated, SendPartitions, Received)
    steps = (
        COMPUTE,
        Step(
            "3",
            "deactivate",
            lambda move, _: [(move.sender, _deactivate(move))],
            Deactivating,
            sender_of,
            lambda move, answer: msgspec.structs.replace(move, tau=answer.tau),
        ),
        Step("3, 4", "drain", _drain, Deactivated, lambda move, d: (move.sender, *d.split_nodes)),
        Step(
            "5 to 7",
            "send",
            lambda move, _: [(move.sender, SendPartitions(move.id))],
            Received,
            receiver_of,
        ),
        REACTIVATE_SENDER,
        REACTIVATE_OTHERS,
    )

    def processor(
        self, processor: Processor, now_us: int, sender: Address, message: Message
    ) -> list[Effect]:
        done = handle_common(processor, now_us, sender, message)
        if done is not None:
            return done
        assert isinstance(message, DeactivatePartitions | SendPartitions)
        holding = processor.moving(message.move)
        if holding is None:
            return answer_unknown_move(processor, sender, message.move)
        if isinstance(message, SendPartitions):
            return send_manifest(processor, holding, final=True)
        m = holding.meta
        if (message.lo, message.hi, message.epoch) != (m.lo, m.hi, m.epoch):
            return stale(processor, sender, message.move)
        effects: list[Effect] = []
        if holding.meta.cap is None:
            effects = freeze(processor, holding, max(*holding.positions, holding.meta.since))
        assert holding.meta.cap is not None
        if message.tau < 0:
            return [*effects, Send(sender, Deactivating(message.move, holding.meta.cap))]
        if holding.frontier >= holding.meta.cap:
            return [*effects, Send(sender, Deactivated(message.move))]
        return effects  # asked again until it has drained

    def split(self, split: Split, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, DeactivatePartitions):
            split.hold(message.move, message.lo, message.hi, message.epoch, message.tau)
            return [Send(sender, Deactivated(message.move))]
        if isinstance(message, ReactivatePartitions):
            return redirect(split, sender, message)
        return []
