"""What a processor answers the union: results, and what follows from being asked.

What is asked for and not here is made by reading the inputs again; what was acknowledged is
forgotten; what was given away is let go once the union says so.
"""

from __future__ import annotations

from thalweg.adapt.moves.messages.data import ReadResults, Release, Results, Want
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ranges import without
from thalweg.overlay.protocol import Address, Effect, Send

ACKED_EVERY = 8  # instants between two durable acknowledgements: after a restart these are repeated


def answer(
    processor: Processor, now_us: int, sender: Address, message: ReadResults
) -> list[Effect]:
    if message.said < processor.said:
        return []  # it has come late: what it asks for may be gone, and is asked for no longer
    processor.said = message.said
    effects: list[Effect] = []
    found = []
    for want in message.wants:
        effects += provide(processor, now_us, want, message.said)
        for holding in processor.within(want.lo, want.hi, want.epoch):
            holding.wanted_us = now_us
            effects += _registered(processor, holding, want)
            effects += _acknowledged(processor, holding, message.said)
            said = holding.results(want)
            if said is None:  # it begins too late: made again from where the reader is
                effects += processor.drop(holding)
            else:
                found.append(said)
    return [*effects, Send(sender, Results(tuple(found)))] if found else effects


def provide(processor: Processor, now_us: int, want: Want, said: int) -> list[Effect]:
    """What is asked for and not here is read from the inputs again."""
    effects: list[Effect] = []
    have = []
    for holding in processor.within(want.lo, want.hi, want.epoch):
        if not holding.meta.active:
            if (holding.meta.kind, holding.meta.since) != (want.kind, want.begin):
                effects += processor.drop(holding)  # prepared for a move that never was
                continue
            effects += processor.activate(holding)
        have.append(holding.range)
    for lo, hi in without((want.lo, want.hi), have):
        acked = max(want.begin, said)
        meta = Meta(lo, hi, want.epoch, want.kind, want.tau, want.begin, acked)
        effects += processor.begin(now_us, meta)
        processor.replayed += 1
    return effects


def _registered(processor: Processor, holding: Holding, want: Want) -> list[Effect]:
    if holding.meta.registered or want.made != holding.meta.made:
        return []
    holding.meta.registered = True
    return [processor.store(holding)]


def _acknowledged(processor: Processor, holding: Holding, said: int) -> list[Effect]:
    m = holding.meta
    before = m.acked
    holding.acknowledge(said)
    if m.acked // ACKED_EVERY == before // ACKED_EVERY:
        return []
    holding.purge()
    return [processor.store(holding), *processor.disk.expired(holding)]


def release(processor: Processor, message: Release) -> list[Effect]:
    effects: list[Effect] = []
    for lo, hi, epoch in message.ranges:
        for holding in processor.within(lo, hi, epoch):
            if holding.meta.given is not None and lo <= holding.meta.lo and holding.meta.hi <= hi:
                effects += processor.drop(holding)
    return effects
