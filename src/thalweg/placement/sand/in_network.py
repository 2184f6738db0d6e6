"""In-Network (SAND 3.4): Edge+, and operators at any host between the places of their inputs.

φ are the hosts that are nearer to each input's place than the other inputs' places are. Of these,
the k with the smallest separation are tried, those that are too late for a bound left out (3.5).
φ is empty for a single input, and where inputs stand together; then Edge+'s configurations remain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.sand.configurations import Asked, Configurations, Placer, Ways, choose
from thalweg.placement.sand.edge_plus import edge_plus


def in_network(k: int) -> Placer:
    """Which places one operator, trying k hosts in between."""

    def placed(inputs: Sequence[Configurations], asked: Asked, ways: Ways) -> Configurations:
        found = edge_plus(inputs, asked, ways)
        if asked.pinned != NONE:
            return found
        hosts = between([below.best for below in inputs], ways.latency_ms)
        in_time = hosts[np.isfinite(found.cost[hosts])]
        tried = [found.best, *in_time[:k].tolist()]
        return choose(found, tried, ways.latency_ms[:, asked.proxy])

    return placed


def between(places: Sequence[int], latency_ms: Floats) -> Ints:
    """φ, nearest to all places in sum first; places that several inputs share count once."""
    distinct = np.unique(np.asarray(places, np.int32))
    if len(distinct) < 2:
        return np.zeros(0, np.int32)
    apart = latency_ms[np.ix_(distinct, distinct)].copy()
    np.fill_diagonal(apart, np.inf)
    way = latency_ms[:, distinct]
    inside = np.flatnonzero((way < apart.min(axis=0)).all(axis=1)).astype(np.int32)
    return inside[np.argsort(way[inside].sum(axis=1), kind="stable")]
