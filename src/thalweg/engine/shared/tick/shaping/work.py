"""What a tick of a join costs in each of its shapes, from what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.probing import bound_together, probe_name, probing_order
from thalweg.engine.shared.kernels.join.shapes import (
    Inputs,
    Shape,
    kept_columns,
    kept_indexes,
)
from thalweg.engine.shared.tick.shaping.estimates import Estimates

# Microseconds; what counts is how they stand to each other (docs/performance.md). What a tick costs
# whatever the shape is counted as well: a tenth of what the shapes differ in may be nothing of it.
TICK = 10_000.0  # however few tuples come
TUPLE = 0.2  # of a new one: landed, hashed, sorted, listed
CALL = 1_000.0  # of a step, however few rows go
PROBE = 0.30  # of a row that probes
PAIR = 0.25  # of a row that comes out
KEEP_CALL = 1_500.0  # to keep something, however few rows
KEEP = 0.35  # of a row that is kept, merged again and again, and let go

Fanouts = Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Expected:
    """Of one shape."""

    shape: Shape
    work: float  # µs a tick
    made: Mapping[Inputs, float]  # rows a tick that are to be kept
    needs: Mapping[tuple[int, tuple[int, ...]], tuple[str, ...]]  # (start, order) -> probes


def expected(op: ph.Join, shape: Shape, known: Estimates, fanouts: Fanouts) -> Expected:
    work = TICK + TUPLE * sum(known.rows)
    made = dict.fromkeys(shape, 0.0)
    needs = {}
    for start in range(len(op.inputs)):
        rows, bound = known.rows[start], {start}
        order = probing_order(op, start, fanouts, shape)
        for binds in bound_together(start, order, shape):
            fanout = known.fanout(op, start, bound, binds)
            work += CALL * min(1.0, rows) + PROBE * rows + PAIR * rows * fanout
            rows *= fanout
            bound |= set(binds)
            here = tuple(sorted(bound))
            if here in made:
                made[here] += rows
        needs[start, tuple(order)] = _probes(start, order)
    for inputs, rows in made.items():
        work += (KEEP_CALL * min(1.0, rows) + KEEP * rows) * len(kept_indexes(op, inputs))
    return Expected(shape, work, made, needs)


def _probes(start: int, order: list[int]) -> tuple[str, ...]:
    """All that has to be known of a way, one input after the other."""
    bounds = ([start, *order[:i]] for i in range(len(order)))
    return tuple(probe_name(start, b, (t,)) for b, t in zip(bounds, order, strict=True))


def shortest_window(op: ph.Join, inputs: Inputs) -> int | None:
    """How long a row of their join lasts at most; None where it may last for ever."""
    windows = (s.window for i in inputs if isinstance(s := op.inputs[i], ph.Source))
    return min((w.length + w.slide for w in windows if w.length is not None), default=None)


def longest_window(op: ph.Join) -> int:
    windows = (s.window for s in op.inputs if isinstance(s, ph.Source))
    return max((w.length + w.slide for w in windows if w.length is not None), default=1)


def held_rows(op: ph.Join, inputs: Inputs, made: float, known: Estimates) -> float | None:
    """How many rows are kept at a time. Parts overlap by half a window on average."""
    lasts = shortest_window(op, inputs)
    return None if lasts is None else made * (1.0 + lasts / 2 / max(known.span, 1.0))


def held_bytes(op: ph.Join, inputs: Inputs, rows: float) -> float:
    """About so much, if texts are short: eight bytes a column, the times, the weight, the hash."""
    return rows * 8 * (len(kept_columns(op, inputs)) + 4) * len(kept_indexes(op, inputs))


def build_work(op: ph.Join, shape: Shape, now: Shape, held: Mapping[Inputs, float]) -> float:
    """To begin with what is not kept yet."""
    fresh = [k for k in shape if k not in now]
    return sum(CALL * len(k) + (PROBE + PAIR + KEEP) * held[k] for k in fresh)
