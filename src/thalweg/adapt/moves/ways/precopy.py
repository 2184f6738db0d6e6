"""Pre-copy: all but the newest segments travel while the sender goes on; only the rest at τ.

Ours. Segments never change once written, so copying them needs no stop. Results are late by the
copy of the rest, not by that of the state. D-CAPE's steps, with the stop moved behind the copy:

    step 1, 2  ComputePartitionsToMove → sender, PartitionsToMove ←
    step 3     CopyPartitions → sender: manifest → receiver, which fetches; the sender goes on
    step 4     Copied ← receiver
    step 5     HandOver → sender: stops at τ, its frontier; the final manifest → receiver
    step 6     the receiver fetches what it lacks: what was written since
    step 7     Received ← receiver (matched, recomputed)
    step 8     ReactivatePartitions, as in MSLB
"""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.messages.commands import (
    ReactivatePartitions,
)
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ways.receiving import (
    Copied,
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
    Step,
    receiver_of,
    redirect,
)
from thalweg.overlay.protocol import Address, Effect, Message


class CopyPartitions(Message, frozen=True):
    move: str


class HandOver(Message, frozen=True):
    move: str


class PreCopy:
    name = "precopy"
    messages = (CopyPartitions, Copied, HandOver)
    steps = (
        COMPUTE,
        Step(
            "3, 4",
            "copy",
            lambda move, _: [(move.sender, CopyPartitions(move.id))],
            Copied,
            receiver_of,
        ),
        Step(
            "5 to 7",
            "hand over",
            lambda move, _: [(move.sender, HandOver(move.id))],
            Received,
            receiver_of,
            lambda move, answer: msgspec.structs.replace(move, tau=answer.tau),
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
        assert isinstance(message, CopyPartitions | HandOver)
        holding = processor.moving(message.move)
        if holding is None:
            return answer_unknown_move(processor, sender, message.move)
        if isinstance(message, CopyPartitions):
            return send_manifest(processor, holding, final=False)
        effects: list[Effect] = []
        if holding.meta.cap is None:
            effects = freeze(processor, holding, max(holding.frontier, holding.meta.since))
        return [*effects, *send_manifest(processor, holding, final=True)]

    def split(self, split: Split, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, ReactivatePartitions):
            return redirect(split, sender, message)
        return []
