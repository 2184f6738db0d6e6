"""Fronts: of a subtree at a host, every cost that is worth its delay, and no other.

Kept by ascending delay, so that cost descends. A placement that another beats on both can't be part
of a best one, since what lies above a subtree sees only its host, its delay and its cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Flags, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    delay_ms: Floats
    cost: Floats

    def __len__(self) -> int:
        return len(self.cost)

    def kept(self, wanted: Flags) -> Front:
        return Front(self.delay_ms[wanted], self.cost[wanted])


START = Front(np.zeros(1), np.zeros(1))
NOTHING = Front(np.zeros(0), np.zeros(0))


def front(delay_ms: Floats, cost: Floats) -> Front:
    """The best of any choices."""
    order = np.lexsort((cost, delay_ms))
    delay_ms, cost = delay_ms[order], cost[order]
    before = np.minimum.accumulate(np.concatenate([[np.inf], cost]))[:-1]
    better = cost < before
    return Front(delay_ms[better], cost[better])


def both(one: Front, other: Front) -> Front:
    """Two inputs of one operator: it waits for the later one, and pays for both."""
    if not len(one) or not len(other):
        return NOTHING
    times = np.union1d(one.delay_ms, other.delay_ms)
    times = times[times >= max(one.delay_ms[0], other.delay_ms[0])]
    cost = np.zeros(len(times))
    for part in (one, other):
        cost = cost + part.cost[np.searchsorted(part.delay_ms, times, side="right") - 1]
    better = np.concatenate([[True], cost[1:] < np.minimum.accumulate(cost)[:-1]])
    return Front(times[better], cost[better])
