"""A network view (SAND 4.3): how far some locations are from each other, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from thalweg.overlay.protocol import Address
from thalweg.placement.sand.configurations import Ways

Pair = tuple[Address, Address]  # in order of names: distances are symmetric (3.3)
View = Mapping[Pair, int]  # one way, in microseconds


def pair(a: Address, b: Address) -> Pair:
    return (a, b) if a < b else (b, a)


def lacking(view: View, locations: Sequence[Address]) -> dict[Address, tuple[Address, ...]]:
    """Who is to measure the way to whom: each unknown pair once, by the first of the two names."""
    found = {
        a: tuple(b for b in locations if a < b and (a, b) not in view) for a in sorted(locations)
    }
    return {a: targets for a, targets in found.items() if targets}


def ways_of(view: View, locations: Sequence[Address], hub: Address) -> Ways:
    """Distances between these locations, in their order.

    Where a pair could not be measured, the way over the hub (the proxy) bounds it from above
    (4.5's triangulation): a bound on latency that holds by it holds. Where that is unknown too,
    there is no way.
    """
    count = len(locations)
    number = {a: i for i, a in enumerate(locations)}
    latency = np.full((count, count), inf)
    np.fill_diagonal(latency, 0.0)
    for (a, b), one_way_us in view.items():
        if a in number and b in number:
            latency[number[a], number[b]] = latency[number[b], number[a]] = one_way_us / 1_000
    over_hub = np.add.outer(latency[:, number[hub]], latency[number[hub]])
    latency = np.where(np.isfinite(latency), latency, over_hub)
    return Ways(latency, latency)


def equal_ways(locations: Sequence[Address]) -> Ways:
    """Where nothing is measured, all are equally far."""
    weight = 1.0 - np.eye(len(locations))
    return Ways(weight, np.zeros_like(weight))
