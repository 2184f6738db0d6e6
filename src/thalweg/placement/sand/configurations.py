"""Configurations: where an operator could stand, where its inputs then stand, and what that costs.

A configuration (3.2) is "the placement and cost of an operator, and the placement of its children".
Of each location the cheapest known one is kept, as arrays over locations. Nothing here knows the
tree: an operator is placed from its inputs' configurations, the distances between the locations in
question and an `Asked`, which is all that a coordinator learns from messages (section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Protocol

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.sand.tree import ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class Configurations:
    """Of one subtree, by the location of its top."""

    best: int  # λ: the location that was chosen
    leaves: Ints  # dl: where the sources of the subtree stand, ascending
    cost: Floats  # γ; infinite where the subtree can't stand
    delay_ms: Floats  # δ: the longest way from its sources
    inputs: Ints  # [input, location]: where that input then stands


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """One of them: the operator here, its inputs there."""

    location: int
    cost: float
    delay_ms: float
    inputs: Ints


@dataclass(frozen=True, eq=False)
class Ways:
    """Between locations: what a unit of rate costs, and how long it takes."""

    weight: Floats  # [from, to]
    latency_ms: Floats  # [from, to]

    @cached_property
    def unweighted(self) -> Ways:
        """As Edge sees it (3): a way costs the same however long it is, if there is one."""
        weight = np.where(np.isfinite(self.weight), 1.0, inf)
        np.fill_diagonal(weight, 0.0)
        return Ways(weight, self.latency_ms)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The operator to place."""

    rates_bps: Floats  # β of its inputs, in their order
    proxy: int  # where the result goes: the proxy, or the next pinned operator on the way to it
    room_ms: Floats  # by location: how late its inputs may be there, to be in time at the proxy
    pinned: int = NONE


class Placer(Protocol):
    """Places one operator over the configurations of its inputs."""

    def __call__(
        self, inputs: Sequence[Configurations], asked: Asked, ways: Ways
    ) -> Configurations: ...


def at_source(host: int, locations: int) -> Configurations:
    """A source stands where it stands: γ is infinite elsewhere (5)."""
    cost = np.full(locations, inf)
    cost[host] = 0.0
    leaves = np.array([host], np.int32)
    nothing = np.zeros((0, locations), np.int32)
    return Configurations(host, leaves, cost, np.zeros(locations), nothing)


def combined(inputs: Sequence[Configurations], asked: Asked, ways: Ways) -> Configurations:
    """γ (5), for all locations at once: every input stays where it was chosen, or comes along.

    Of the two, the cheaper one that is in time. Best is not chosen yet.
    """
    locations = len(ways.weight)
    everywhere = np.arange(locations, dtype=np.int32)
    cost, delay = np.zeros(locations), np.zeros(locations)
    places = np.empty((len(inputs), locations), np.int32)
    for i, (below, rate) in enumerate(zip(inputs, asked.rates_bps.tolist(), strict=True)):
        late = below.delay_ms[below.best] + ways.latency_ms[below.best]
        stay = below.cost[below.best] + priced(rate, ways.weight[below.best])
        stay = np.where(late <= asked.room_ms, stay, inf)
        come = np.where(below.delay_ms <= asked.room_ms, below.cost, inf)
        stays = stay <= come
        cost += np.where(stays, stay, come)
        delay = np.maximum(delay, np.where(stays, late, below.delay_ms))
        places[i] = np.where(stays, below.best, everywhere)
    if asked.pinned != NONE:
        cost = np.where(everywhere == asked.pinned, cost, inf)
    leaves = np.unique(np.concatenate([below.leaves for below in inputs]))
    return Configurations(NONE, leaves, cost, delay, places)


def choose(
    found: Configurations, locations: Iterable[int], onward_ms: Floats | None = None
) -> Configurations:
    """The cheapest of these locations (6); of equals the nearest to where the result goes."""
    tried = list(dict.fromkeys(locations))
    cost = found.cost[tried]
    equal = [v for v, c in zip(tried, cost, strict=True) if c <= cost.min() * (1 + ROUNDING)]
    best = equal[0] if onward_ms is None else min(equal, key=lambda v: float(onward_ms[v]))
    return replace(found, best=best)


def with_better(known: Configurations, found: Iterable[Configuration]) -> Configurations:
    """Of each location, the cheapest configuration of what is known and what was found."""
    cost, delay, inputs = known.cost.copy(), known.delay_ms.copy(), known.inputs.copy()
    for one in found:
        if one.cost < cost[one.location]:
            cost[one.location], delay[one.location] = one.cost, one.delay_ms
            inputs[:, one.location] = one.inputs
    return replace(known, cost=cost, delay_ms=delay, inputs=inputs)


def priced(rate_bps: float, ways: Floats) -> Floats:
    """What a rate costs over ways; not even nothing can take a way that is not there."""
    if rate_bps > 0:
        return rate_bps * ways
    return np.where(np.isfinite(ways), 0.0, ways)
