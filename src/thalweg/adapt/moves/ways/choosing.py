"""Steps 1 and 2 of every way: the sender chooses the partitions to move.

Source: D-CAPE 3.2, ComputePartitionsToMove. Among what does not move already, so that moves of one
sender never meet.
"""

from __future__ import annotations

from thalweg.adapt.moves.messages.commands import ComputePartitionsToMove, PartitionsToMove, Refused
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Pending
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.processor.weighing import (
    cuts,
    hottest,
    pieces,
    rows_by_key,
    rows_by_position,
)
from thalweg.adapt.moves.ranges import Range, overlap, without
from thalweg.overlay.protocol import Address, Effect, Send


class CantMove(Exception):
    """Why not."""


def compute(
    processor: Processor, now_us: int, sender: Address, message: ComputePartitionsToMove
) -> list[Effect]:
    """Choose a range whose share of the kept rows is nearest to what was asked for."""
    known = processor.moving(message.move)
    effects: list[Effect] = []
    if known is None:
        if message.move in processor.decided:
            return []
        try:
            found = _named(processor, message) if message.lo >= 0 else _nearest(processor, message)
        except CantMove as error:
            return [Send(sender, Refused(message.move, str(error)))]
        if found is None:
            return []  # asked again until it is settled
        holding, inner = found
        effects = processor.divide(holding, inner)
        known = next(
            h for h in processor.holdings if h.range == inner and h.meta.epoch == holding.meta.epoch
        )
        known.meta.pending = Pending(message.move, message.way, message.receiver, now_us)
        effects.append(processor.store(known))
    m = known.meta
    return [*effects, Send(sender, PartitionsToMove(message.move, m.lo, m.hi, m.epoch))]


def _named(processor: Processor, message: ComputePartitionsToMove) -> tuple[Holding, Range] | None:
    """Where the buckets are; None while what has them has still to settle."""
    asked = (message.lo, message.hi)
    text = f"buckets {message.lo} to {message.hi - 1}"
    here = [h for h in processor.owned() if overlap(h.range, asked)]
    if without(asked, [h.range for h in here]):
        raise CantMove(f"{text} are not all here")
    if len(here) > 1:
        pieces = ", ".join(f"{h.meta.lo} to {h.meta.hi - 1}" for h in sorted(here, key=_lowest))
        raise CantMove(f"{text} are here in pieces, {pieces}: move them one by one")
    (holding,) = here
    if holding.meta.pending is not None:
        raise CantMove(f"{text} are on the move")
    return (holding, asked) if holding.is_movable else None


def _nearest(processor: Processor, message: ComputePartitionsToMove) -> tuple[Holding, Range]:
    movable = [h for h in processor.holdings if h.is_movable]
    if not movable:
        raise CantMove("nothing here can move now")
    everything = rows_by_key(movable)
    wanted = message.share * everything.total()
    starts = cuts(everything, processor.query.buckets)
    inside = rows_by_position(everything, processor.query.buckets)
    best: tuple[float, int, Range, Holding] | None = None
    for holding in movable:
        weight, lo = 0, holding.meta.lo
        for _, hi, rows in pieces(holding.range, starts, inside):  # what stays is one range
            weight += rows
            found = (abs(weight - wanted), hi - lo, (lo, hi), holding)
            if best is None or found[:2] < best[:2]:
                best = found
    assert best is not None
    hot = hottest(everything)
    if hot is not None and best[0] >= wanted:
        raise CantMove(f"{hot.text()}: no cut makes this node lighter")
    return best[3], best[2]


def _lowest(holding: Holding) -> int:
    return holding.meta.lo
