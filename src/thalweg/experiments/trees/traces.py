"""Prices in place of the source's stock traces, which are lost (COSMOS 4.4.1).

A seeded random walk in cents, polled every second, with volatility that comes in clusters: the log
of a price's activity wanders (an AR(1) process), and both how often it changes and by how much
follow from it. The source gives no rates. They are set so that its own observations are possible:
at one row a second for 100 objects, a source with 256 children is not overloaded, and with 500
objects nearly so.

Requirements are uniform in 0.01 … 0.1, in ten classes: 0.01, 0.02 …; each is rounded down, so that
nobody gets less than asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.union_rates import union_rates

CLASSES = 10
STEP_S = 1.0
ACTIVITY = 0.0065  # changes a second, of a price in quiet times
MEMORY = 0.998  # of a second's activity, in the next
WANDERING = 0.06
CENTS = 3.0  # by how much a price changes, on average in quiet times


@dataclass(frozen=True, eq=False)
class Trace:
    """Rows that are due for somebody, in order of time, over all objects."""

    at_s: Floats
    object: np.ndarray
    label: np.ndarray  # classes, as bits
    objects: int
    seconds: float

    def union_rates(self) -> Floats:
        """[objects, 2^classes], over the whole trace."""
        return np.array(
            [
                union_rates(self.label[self.object == x], CLASSES, self.seconds)
                for x in range(self.objects)
            ]
        )


def drawn_trace(seed: int, objects: int, seconds: float) -> Trace:
    """Which row is due for which class is decided on the unfiltered walk."""
    rng = np.random.default_rng([seed, 54])
    log_activity = np.zeros(objects)
    price = np.full(objects, 5_000.0)  # cents
    tolerance = np.arange(1, CLASSES + 1, dtype=float)
    held = np.repeat(price[:, None], CLASSES, axis=1)
    bits = 1 << np.arange(CLASSES)
    times, which, labels = [], [], []
    for step in range(int(seconds / STEP_S)):
        log_activity = MEMORY * log_activity + WANDERING * rng.standard_normal(objects)
        busy = np.exp(np.clip(log_activity, -4, 3.5))
        moved = np.flatnonzero(rng.random(objects) < ACTIVITY * busy)
        if not len(moved):
            continue
        size = np.rint(rng.exponential(CENTS * np.sqrt(busy[moved])) + 0.5)
        price[moved] += size * rng.choice((-1.0, 1.0), len(moved))
        due = np.abs(price[moved, None] - held[moved]) >= tolerance
        rows, columns = np.nonzero(due)
        held[moved[rows], columns] = price[moved[rows]]
        label = due @ bits
        said = label > 0
        # Within the second of the poll, so that prices don't move all at once.
        times.append(step * STEP_S + rng.random(said.sum()) * STEP_S)
        which.append(moved[said])
        labels.append(label[said])
    at = np.concatenate(times)
    order = np.argsort(at, kind="stable")
    return Trace(
        at[order], np.concatenate(which)[order], np.concatenate(labels)[order], objects, seconds
    )


def drawn_interests(seed: int, count: int, objects: int, interest: float) -> np.ndarray:
    """The class of each provider for each object, as one bit; 0 where it has no interest."""
    rng = np.random.default_rng([seed, 55])
    wanted = rng.random((count + 1, objects)) < interest
    required = rng.uniform(0.01, 0.1, (count + 1, objects))
    classes = np.clip((required * 100 + 1e-9).astype(int) - 1, 0, CLASSES - 1)
    own = np.where(wanted, 1 << classes, 0)
    own[0] = 0
    return own
