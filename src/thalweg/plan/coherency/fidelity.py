"""Fidelity: for which part of the time a reader's value was as near as it asked (COSMOS 4.1.1).

Per reader, object and period. The source says that a divergence *below* the requirement conforms;
here one that does not exceed it does, as it causes no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from thalweg.plan.coherency.tolerance import Age, Tolerance, Update, diverges


@dataclass(frozen=True, slots=True)
class Seen:
    """From this moment on, the reader has this update."""

    at: int
    update: Update


def fidelity(
    tolerance: Tolerance,
    source: Sequence[Update],
    reader: Sequence[Seen],
    start: int,
    end: int,
) -> float:
    """Of a period [start, end), in which the reader had something to compare; both in order.

    What the source had, it had from its row's instant on. Before the first row there is nothing to
    diverge from; a source's row with no reader's value at all is a loss.
    """
    if end <= start:
        raise ValueError("a period ends after it begins")
    moments = sorted({start, *(u.instant for u in source), *(s.at for s in reader)} | {end})
    lost = 0
    newest: Update | None = None
    held: Update | None = None
    to_come, to_see = 0, 0
    for at, until in pairwise(moments):
        while to_come < len(source) and source[to_come].instant <= at:
            newest, to_come = source[to_come], to_come + 1
        while to_see < len(reader) and reader[to_see].at <= at:
            held, to_see = reader[to_see].update, to_see + 1
        low, high = max(at, start), min(until, end)
        if low < high and newest is not None:
            lost += _lost(tolerance, source, held, newest, low, high)
    return 1 - lost / (end - start)


def _lost(
    tolerance: Tolerance,
    source: Sequence[Update],
    held: Update | None,
    newest: Update,
    low: int,
    high: int,
) -> int:
    """Within a stretch in which nothing happens."""
    if held is None:
        return high - low
    if not isinstance(tolerance, Age):
        limits = tolerance.limits(held, None)
        return high - low if diverges(limits, held, newest, low) else 0
    first = next((u for u in source if held.number < u.number <= newest.number), None)
    if first is None:
        return 0
    limits = tolerance.limits(held, first)
    assert limits.before is not None
    return max(0, high - max(low, limits.before))


def loss(fidelities: Sequence[Sequence[float]]) -> float:
    """AvgLF: over readers, of the mean over each one's objects."""
    means = [1 - sum(f) / len(f) for f in fidelities if f]
    return sum(means) / len(means) if means else 0.0
