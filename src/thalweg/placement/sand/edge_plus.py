"""Edge+ (SAND 3.3): Edge with distances, and with inputs moved towards each other.

Costs are rate times distance. Besides Edge's three cases, every input may stand at any source below
it, and the operator with one of them, if that brings them no farther apart in sum than the best of
the three cases does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.sand.configurations import (
    Asked,
    Configuration,
    Configurations,
    Ways,
    choose,
    combined,
    priced,
    with_better,
)
from thalweg.placement.sand.edge import three_cases


def edge_plus(inputs: Sequence[Configurations], asked: Asked, ways: Ways) -> Configurations:
    onward = ways.latency_ms[:, asked.proxy]
    found = choose(combined(inputs, asked, ways), three_cases(inputs, asked), onward)
    limit = float(ways.latency_ms[found.inputs[:, found.best], found.best].sum())
    near = list(close_together(inputs, asked, ways, limit))
    return choose(with_better(found, near), [found.best, *(one.location for one in near)], onward)


def close_together(
    inputs: Sequence[Configurations], asked: Asked, ways: Ways, limit_ms: float
) -> Iterator[Configuration]:
    """Case 4: of each location, the cheapest configuration with no larger total separation.

    The operator stands with one of its inputs; a pinned one stands where it must.
    """
    locations = [(v, i) for i, below in enumerate(inputs) for v in below.leaves.tolist()]
    for where, shared in locations if asked.pinned == NONE else [(asked.pinned, NONE)]:
        options = [
            np.array([where], np.int32) if i == shared else below.leaves
            for i, below in enumerate(inputs)
        ]
        places = _cheapest(where, inputs, options, asked, ways, limit_ms)
        if places is None:
            continue
        cost, delay = 0.0, 0.0
        for below, place, rate in zip(inputs, places, asked.rates_bps.tolist(), strict=True):
            cost += float(below.cost[place] + priced(rate, ways.weight[place, where]))
            delay = max(delay, float(below.delay_ms[place] + ways.latency_ms[place, where]))
        yield Configuration(where, cost, delay, places)


def _cheapest(
    where: int,
    inputs: Sequence[Configurations],
    options: Sequence[Ints],
    asked: Asked,
    ways: Ways,
    limit_ms: float,
) -> Ints | None:
    """Where inputs stand at least cost, no farther from here in sum than the limit, and in time.

    Choices for the first inputs are kept as a front over (separation, cost): what is farther *and*
    dearer than another can't be part of the best. So the permutations need not be listed.
    """
    apart, cost = np.zeros(1), np.zeros(1)
    chosen = np.zeros((0, 1), np.int32)
    for below, rate, places in zip(inputs, asked.rates_bps.tolist(), options, strict=True):
        way = ways.latency_ms[places, where]
        price = below.cost[places] + priced(rate, ways.weight[places, where])
        price = np.where(below.delay_ms[places] + way <= asked.room_ms[where], price, inf)
        apart, cost = np.add.outer(apart, way).ravel(), np.add.outer(cost, price).ravel()
        kept = _front(apart, cost, limit_ms)
        if not len(kept):
            return None
        apart, cost = apart[kept], cost[kept]
        chosen = np.vstack([chosen[:, kept // len(places)], places[kept % len(places)]])
    return chosen[:, int(np.argmin(cost))]


def _front(apart: Floats, cost: Floats, limit_ms: float) -> Ints:
    """The choices within the limit of which no other is nearer and as cheap."""
    within = np.flatnonzero((apart <= limit_ms) & np.isfinite(cost))
    within = within[np.lexsort((cost[within], apart[within]))]
    cheapest_before = np.minimum.accumulate(np.concatenate([[inf], cost[within]]))[:-1]
    return within[cost[within] < cheapest_before].astype(np.int32)
