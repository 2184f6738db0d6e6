"""What a coordinator sees of configurations (SAND 4): some locations, and some of what is known.

A message carries the configurations of a subtree at a few locations (4.2: the best one and the
common locations; 4.3: descendant locations too). Each coordinator numbers the locations that it has
heard of by itself, and has distances between these alone. With both, the placers run as they do on
the whole network, and give the same wherever nothing that they would have chosen was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.sand.configurations import Configurations, Ways


def restricted(known: Configurations, locations: Iterable[int]) -> Configurations:
    """As if it were known at these locations only; the chosen one is always told."""
    told = np.zeros(len(known.cost), bool)
    told[[known.best, *locations]] = True
    return replace(known, cost=np.where(told, known.cost, inf))


def seen_in(known: Configurations, number: Ints, locations: int) -> Configurations:
    """In another numbering of locations: `number` has the new number of each, or NONE.

    A configuration is lost where its location is not numbered. Where its inputs stand is only
    handed back to those who told it, so their numbers stay as they were told.
    """
    if number[known.best] == NONE:
        raise ValueError("the location that was chosen must be known to whoever hears of it")
    there = np.flatnonzero(number != NONE)
    cost, delay = np.full(locations, inf), np.zeros(locations)
    inputs = np.full((len(known.inputs), locations), NONE, np.int32)
    cost[number[there]], delay[number[there]] = known.cost[there], known.delay_ms[there]
    inputs[:, number[there]] = known.inputs[:, there]
    leaves = number[known.leaves]
    return Configurations(
        int(number[known.best]), ints(np.sort(leaves[leaves != NONE])), cost, delay, inputs
    )


def ways_between(ways: Ways, locations: Ints) -> Ways:
    """The distances that somebody has who knows these locations, in their order."""
    chosen = np.ix_(locations, locations)
    weight: Floats = ways.weight[chosen]
    return Ways(weight, ways.latency_ms[chosen])
