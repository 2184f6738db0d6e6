"""Edge (SAND 3.2): operators stand at sources or at the proxy, whatever the distances.

Three cases: at the input that brings most (4), at a location that all inputs could share, or at
the proxy, because the way of the result is not counted before its taker is placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.sand.configurations import Asked, Configurations, Ways, choose, combined


def edge(inputs: Sequence[Configurations], asked: Asked, ways: Ways) -> Configurations:
    found = combined(inputs, asked, ways.unweighted)
    return choose(found, three_cases(inputs, asked))


def three_cases(inputs: Sequence[Configurations], asked: Asked) -> list[int]:
    """cl ∪ {λ′, r} of (6); a pinned operator has no choice."""
    if asked.pinned != NONE:
        return [asked.pinned]
    brought: dict[int, float] = {}
    for below, rate in zip(inputs, asked.rates_bps.tolist(), strict=True):
        brought[below.best] = brought.get(below.best, 0.0) + rate
    largest = max(brought, key=brought.__getitem__)
    common = reduce(np.intersect1d, [below.leaves for below in inputs])
    return [largest, *common.tolist(), asked.proxy]
