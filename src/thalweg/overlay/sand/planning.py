"""One zone, placed from what messages carry (SAND 4.2 to 4.5).

A pure function of the zone, of what the boundary children's coordinators told, of the view and of
the hosts that can't be used: whoever coordinates the zone, at whatever time, comes to the same
plan. The placers are those of `placement.sand`; locations are numbered in order of their addresses.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from math import inf

import msgspec
import numpy as np

from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.query import placer_named
from thalweg.overlay.sand.view import View, equal_ways, ways_of
from thalweg.overlay.sand.zones import Zone, ZoneOperator
from thalweg.placement.arrays import NONE, floats
from thalweg.placement.sand.configurations import Asked, Configurations, Ways
from thalweg.placement.sand.tree import ROUNDING
from thalweg.placement.sand.views import restricted


class Told(msgspec.Struct, frozen=True):
    """What a MAP says of a subtree: where it could stand, at which cost, how late (4.2, 4.5)."""

    best: Address
    leaves: tuple[Address, ...]  # where its sources stand
    configurations: tuple[tuple[Address, float, float], ...]  # location, γ, δ in ms
    candidates: tuple[Address, ...] = ()  # interesting peers (4.4)
    view: tuple[tuple[Address, Address, int], ...] = ()


def told_of_source(host: Address, candidates: tuple[Address, ...]) -> Told:
    return Told(host, (host,), ((host, 0.0, 0.0),), candidates)


@dataclass(frozen=True, slots=True, eq=False)
class ZonePlan:
    zone: Zone
    locations: tuple[Address, ...]
    known: Mapping[int, Configurations]  # of the zone's operators
    candidates: tuple[Address, ...]
    view: View

    @property
    def top(self) -> Configurations:
        return self.known[self.zone.top]

    @property
    def best(self) -> Address:
        return self.locations[self.top.best]

    def can_stand(self, location: Address) -> bool:
        """Whether it is among the possible configurations (4.2, backtracked placement)."""
        if location not in self.locations:
            return False
        return bool(np.isfinite(self.top.cost[self.locations.index(location)]))

    def stand(self, top: Address) -> dict[int, Address]:
        """With the zone's top there: where its operators and its boundary children stand."""
        found = {self.zone.top: top}
        for operator in reversed(self.zone.operators):
            here = self.locations.index(found[operator.node])
            inputs = self.known[operator.node].inputs[:, here]
            for node, place in zip(operator.inputs, inputs.tolist(), strict=True):
                found[node] = self.locations[place]
        return found

    def told(self) -> Told:
        """For the zone above: the best, and whatever its ancestors may ask for."""
        zone = self.zone
        leaves = tuple(self.locations[i] for i in self.top.leaves.tolist())
        asked_for = {*zone.common, *zone.onward}
        if zone.algorithm != "edge":
            asked_for.update(leaves)
        asked_for.update(self.candidates)
        numbers = [i for i, a in enumerate(self.locations) if a in asked_for]
        known = restricted(self.top, numbers)
        configurations = tuple(
            (self.locations[i], float(known.cost[i]), float(known.delay_ms[i]))
            for i in np.flatnonzero(np.isfinite(known.cost)).tolist()
        )
        ways = tuple((a, b, us) for (a, b), us in sorted(self.view.items()))
        return Told(self.best, leaves, configurations, self.candidates, ways)


def locations_of(zone: Zone, told: Mapping[int, Told]) -> tuple[Address, ...]:
    """All that the zone has heard of."""
    found: set[Address] = {a for operator in zone.operators for a in operator.onward}
    found.update(zone.common)
    found.update(o.pinned for o in zone.operators if o.pinned is not None)
    for child in told.values():
        found.update((child.best, *child.leaves))
        found.update(location for location, _, _ in child.configurations)
    found.update(_candidates(zone, told))
    return tuple(sorted(found))


def _candidates(zone: Zone, told: Mapping[int, Told]) -> tuple[Address, ...]:
    """Only In-Network looks beyond sources and proxy (4.4)."""
    if zone.algorithm != "in-network":
        return ()
    return tuple(sorted({a for child in told.values() for a in child.candidates}))


def place_zone(
    zone: Zone, told: Mapping[int, Told], view: View, unusable: Container[Address] = ()
) -> ZonePlan | None:
    """None where no configuration is left: nothing is in time, or hosts are missing."""
    locations = locations_of(zone, told)
    hub = zone.onward[-1]
    ways = ways_of(view, locations, hub) if zone.is_measured else equal_ways(locations)
    ways = _without(ways, [i for i, a in enumerate(locations) if a in unusable])
    number = {a: i for i, a in enumerate(locations)}
    placer = placer_named(zone.algorithm, zone.k)
    known = {node: _heard(child, number) for node, child in told.items()}
    for operator in zone.operators:
        inputs = [known[i] for i in operator.inputs]
        found = placer(inputs, _asked(zone, operator, number, ways), ways)
        if not np.isfinite(found.cost[found.best]):
            return None
        known[operator.node] = found
    own = {o.node: known[o.node] for o in zone.operators}
    return ZonePlan(zone, locations, own, _candidates(zone, told), dict(view))


def _heard(child: Told, number: Mapping[Address, int]) -> Configurations:
    """Where its inputs stand is for its own coordinator to know."""
    cost, delay = np.full(len(number), inf), np.zeros(len(number))
    for location, gamma, delta in child.configurations:
        cost[number[location]], delay[number[location]] = gamma, delta
    leaves = np.array(sorted(number[a] for a in child.leaves), np.int32)
    nothing = np.zeros((0, len(number)), np.int32)
    return Configurations(number[child.best], leaves, cost, delay, nothing)


def _without(ways: Ways, unusable: list[int]) -> Ways:
    """No way leads to a host that is gone, nor away from it."""
    if not unusable:
        return ways
    weight, latency = ways.weight.copy(), ways.latency_ms.copy()
    for matrix in (weight, latency):
        matrix[unusable, :] = matrix[:, unusable] = inf
    return Ways(weight, latency)


def _asked(zone: Zone, operator: ZoneOperator, number: Mapping[Address, int], ways: Ways) -> Asked:
    """As `placement.sand.placing` asks: with a bound, room is left for the way ahead (3.5)."""
    stops = [number[a] for a in operator.onward]
    room = np.full(len(number), inf)
    if zone.bound_ms < inf:
        tail = 0.0
        for nearer, farther in zip(stops[-2::-1], stops[:0:-1], strict=True):
            tail += float(ways.latency_ms[nearer, farther])
        room = zone.bound_ms * (1 + ROUNDING) - tail - ways.latency_ms[:, stops[0]]
    pinned = NONE if operator.pinned is None else number[operator.pinned]
    return Asked(floats(operator.rates_bps), stops[0], room, pinned)
