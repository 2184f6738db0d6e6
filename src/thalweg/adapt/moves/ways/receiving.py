"""How a range's state is frozen, sent and received: what MSLB and pre-copy have in common."""

from __future__ import annotations

import msgspec

from thalweg.adapt.moves.messages.commands import (
    Aborted,
    ComputePartitionsToMove,
    ReactivatePartitions,
    Refused,
)
from thalweg.adapt.moves.messages.data import FULL
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ways.choosing import compute
from thalweg.adapt.moves.ways.shipping import (
    AT_ONCE,
    FORMAT,
    Fetch,
    Incoming,
    Listed,
    Manifest,
    Shipped,
    checksum,
    encode_segment,
    stored_as,
)
from thalweg.adapt.moves.ways.way import reactivate
from thalweg.overlay.protocol import Address, Effect, Message, Persist, Send


class Copied(Message, frozen=True):
    """The receiver has all segments that were listed so far."""

    move: str


class Received(Message, frozen=True):
    """Step 7: the receiver has the state at τ, in its own shape."""

    move: str
    tau: int
    work: int  # to recompute what did not match


def handle_common(
    processor: Processor, now_us: int, sender: Address, message: Message
) -> list[Effect] | None:
    """What a processor does in both ways; None if the message is of one of them."""
    if isinstance(message, ComputePartitionsToMove):
        return compute(processor, now_us, sender, message)
    if isinstance(message, ReactivatePartitions):
        return reactivate(processor, now_us, sender, message)
    if isinstance(message, Manifest | Fetch | Shipped):
        return receive(processor, now_us, sender, message) or serve(processor, sender, message)
    return None


def answer_unknown_move(processor: Processor, sender: Address, move: str) -> list[Effect]:
    """The manager asks about a move that this sender has ended, or never knew."""
    return [] if move in processor.decided else [Send(sender, Aborted(move))]


def freeze(processor: Processor, holding: Holding, tau: int) -> list[Effect]:
    """Ticks never cross τ from now on."""
    assert holding.meta.pending is not None
    holding.meta.cap = tau
    holding.meta.pending = msgspec.structs.replace(holding.meta.pending, stage="frozen")
    return [processor.store(holding)]


def send_manifest(processor: Processor, holding: Holding, *, final: bool) -> list[Effect]:
    """What there is to fetch; the final one only once all below τ is in it."""
    m = holding.meta
    assert m.pending is not None
    if final and (m.cap is None or holding.frontier < m.cap):
        return []
    states = holding.states()
    newest = max((n for segments in states.values() for n in segments), default=-1)
    listed = tuple(
        Listed(inputs, number, checksum(segment))
        for inputs, segments in states.items()
        for number, segment in segments.items()
        if final or number < newest
    )
    manifest = Manifest(
        m.pending.move,
        m.lo,
        m.hi,
        m.epoch + 1,
        m.cap if final and m.cap is not None else -1,
        final,
        tuple(states),
        listed,
        FORMAT,
        processor.version,
    )
    return [Send(m.pending.receiver, manifest)]


def serve(processor: Processor, sender: Address, message: Message) -> list[Effect]:
    """The sender's side: segments that are asked for."""
    if not isinstance(message, Fetch):
        return []
    holding = processor.moving(message.move)
    if holding is None:
        return []
    states = holding.states()
    effects: list[Effect] = []
    for inputs, number in message.keys:
        segment = states.get(inputs, {}).get(number)
        if segment is None:  # it has expired meanwhile, or the shape is another: list anew
            return [
                *effects,
                *send_manifest(processor, holding, final=holding.meta.cap is not None),
            ]
        effects.append(Send(sender, Shipped(message.move, inputs, number, segment)))
    return effects


def receive(processor: Processor, now_us: int, sender: Address, message: Message) -> list[Effect]:
    """The receiver's side: list, fetch, check, match."""
    if isinstance(message, Manifest):
        return _listed(processor, now_us, sender, message)
    if isinstance(message, Shipped):
        incoming = processor.arriving.incoming.get(message.move)
        if incoming is None or not incoming.take(message):
            return []
        key = stored_as(message.move, message.inputs, message.number)
        value = encode_segment(message.rows)
        processor.arriving.fetched.setdefault(message.move, {})[key] = value
        return [Persist(key, value), *_go_on(processor, now_us, incoming)]
    return []


def _listed(processor: Processor, now_us: int, sender: Address, manifest: Manifest) -> list[Effect]:
    manager = processor.directory.manager
    if manifest.format != FORMAT or manifest.version != processor.version:
        here, there = f"{FORMAT}/{processor.version}", f"{manifest.format}/{manifest.version}"
        why = (
            f"state of format and values {there} does not fit {here}; use ptlb, or the same version"
        )
        return [Send(manager, Refused(manifest.move, why))]
    prepared = processor.prepared(manifest.move)
    if prepared is not None:
        return [Send(manager, Received(manifest.move, prepared.meta.since, 0))]
    incoming = processor.arriving.incoming.get(manifest.move)
    if incoming is None:
        incoming = processor.arriving.incoming[manifest.move] = Incoming(sender, manifest, now_us)
        incoming.restore(processor.arriving.fetched.get(manifest.move, {}).items())
    else:
        incoming.update(manifest)
    return _go_on(processor, now_us, incoming)


def _go_on(processor: Processor, now_us: int, incoming: Incoming) -> list[Effect]:
    incoming.since_us = now_us
    move = incoming.manifest.move
    missing = incoming.missing()
    if incoming.asked:
        return []
    if missing:
        incoming.asked = missing[:AT_ONCE]
        return [Send(incoming.sender, Fetch(move, tuple(incoming.asked)))]
    if not incoming.manifest.final:
        return [Send(processor.directory.manager, Copied(move))]
    return _prepare(processor, now_us, incoming)


def _prepare(processor: Processor, now_us: int, incoming: Incoming) -> list[Effect]:
    manifest = incoming.manifest
    tau = manifest.tau
    meta = Meta(
        manifest.lo,
        manifest.hi,
        manifest.epoch,
        FULL,
        0,
        tau,
        tau,
        active=False,
        prepared_for=manifest.move,
    )
    holding = processor.make(now_us, meta)
    work = holding.resume(incoming.states(), tau)
    holding.tick_work += work
    effects: list[Effect] = []
    for other in list(processor.holdings):  # what is left of an earlier try
        same = other.meta.epoch == meta.epoch and not other.meta.active
        if same and other.meta.lo < meta.hi and meta.lo < other.meta.hi:
            effects += processor.drop(other)
    effects += processor.arriving.forget(manifest.move)
    if any(
        h.meta.epoch == meta.epoch and h.meta.lo < meta.hi and meta.lo < h.meta.hi
        for h in processor.holdings
    ):
        return effects  # the union was faster: it is running, from the inputs
    processor.holdings.append(holding)
    effects += processor.disk.whole(holding)
    received = Received(manifest.move, tau, work)
    return [*effects, Send(processor.directory.manager, received)]
