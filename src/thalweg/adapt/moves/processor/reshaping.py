"""Other shapes for a processor's ranges, each from its frontier on: asked for, or its own choice.

Source: D-CAPE's local adaptation (LM).
"""

from __future__ import annotations

from thalweg.adapt.moves.messages.requests import Reshape, Reshaped
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.ranges import overlap
from thalweg.adapt.moves.state.shapes import parse
from thalweg.overlay.protocol import Deliver, Effect


def reshape(processor: Processor, request: Reshape) -> list[Effect]:
    shape = parse(request.shape, processor.query.streams)
    processor.shape = shape
    effects: list[Effect] = []
    for holding in processor.holdings:
        if overlap(holding.range, (request.lo, request.hi)) and holding.shape != shape:
            holding.reshape(shape)
            effects.append(processor.store(holding))
    return effects


def reoptimise(processor: Processor) -> list[Effect]:
    """Each range in the shape that its own rates ask for."""
    effects: list[Effect] = []
    names = processor.query.streams
    for holding in processor.holdings:
        before = holding.shape
        shape = holding.better_shape()
        if shape is not None:
            work = holding.reshape(shape)
            found = Reshaped(
                holding.meta.lo,
                holding.meta.hi,
                before.text(names),
                shape.text(names),
                holding.frontier,
                f"{holding.optimiser.why}; {work} to recompute",
            )
            effects += [processor.store(holding), Deliver(found)]
    return effects
