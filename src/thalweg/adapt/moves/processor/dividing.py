"""A holding in pieces: the same state, positions and results, by key."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush

import msgspec

from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.query import bucket_of
from thalweg.adapt.moves.ranges import Range
from thalweg.adapt.moves.state.matching import match


def divided(holding: Holding, ranges: list[Range]) -> list[Holding]:
    return [_piece(holding, part) for part in ranges]


def _piece(whole: Holding, part: Range) -> Holding:
    ours = _inside(part, whole.query.buckets)
    meta = msgspec.structs.replace(whole.meta, lo=part[0], hi=part[1])
    piece = Holding(whole.query, meta, whole.shape)
    states = {
        inputs: {
            number: kept
            for number, segment in segments.items()
            if (kept := tuple([c for c in segment if ours(c[2])]))
        }
        for inputs, segments in whole.states().items()
    }
    piece.join = match(whole.query, whole.shape, states, whole.frontier, whole.frontier).join
    piece.frontier, piece.positions = whole.frontier, list(whole.positions)
    piece.fold()
    piece.entered_from = whole.entered_from
    piece.wanted_us = whole.wanted_us
    piece.outbox = whole.outbox.part(ours)
    for entry in whole.waiting:
        if ours(entry[2][2]):
            heappush(piece.waiting, entry)
    return piece


def _inside(part: Range, buckets: int) -> Callable[[int], bool]:
    lo, hi = part
    return lambda key: lo <= bucket_of(key, buckets) < hi
