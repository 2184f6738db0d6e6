"""Joins that change what they keep beside windows every few ticks."""

from __future__ import annotations

from thalweg.engine.shared.compile.physical import Join
from thalweg.engine.shared.kernels.join.shapes import Shape, shapes_of
from thalweg.engine.shared.tick.shaping.policy import Chosen


def in_turn(salt: int, ticks: int = 3) -> Chosen:
    """Each of a join's shapes for so many ticks."""

    def choose(op: Join, tick: int) -> Shape:
        shapes = shapes_of(op)
        return shapes[(salt + tick // ticks) % len(shapes)]

    return Chosen(choose)
