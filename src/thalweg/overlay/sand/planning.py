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
    rate_bps: float | None = None  # as its host has seen it; None: as the query says


def told_of_source(
    host: Address, candidates: tuple[Address, ...], rate_bps: float | None = None
) -> Told:
    return Told(host, (host,), ((host, 0.0, 0.0),), candidates, (), rate_bps)


@dataclass(frozen=True, slots=True)
class Judged:
    """A stand of a zone, by a plan; infinite if something can't stand there, or be reached."""

    cost: float  # with all that is below the zone
    within: float  # of the zone's own ways
    delay_ms: float  # until its top is ready


@dataclass(frozen=True, slots=True, eq=False)
class ZonePlan:
    zone: Zone
    locations: tuple[Address, ...]
    known: Mapping[int, Configurations]  # of the zone's operators and boundary children
    candidates: tuple[Address, ...]
    view: View
    ways: Ways
    rates_bps: Mapping[int, float]  # of all inputs

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

    def judge(self, stand: Mapping[int, Address]) -> Judged:
        """What this stand of operators and boundary children costs, and when its top is ready."""
        number = {a: i for i, a in enumerate(self.locations)}
        if any(place not in number for place in stand.values()):
            return Judged(inf, inf, inf)
        at = {node: number[place] for node, place in stand.items()}
        below, within, delay_ms = 0.0, 0.0, dict[int, float]()
        for child in self.zone.boundary:
            known = self.known[child.node]
            below += float(known.cost[at[child.node]])
            delay_ms[child.node] = float(known.delay_ms[at[child.node]])
        for operator in self.zone.operators:
            here, late = at[operator.node], 0.0
            for i in operator.inputs:
                weight = float(self.ways.weight[at[i], here])
                within += self.rates_bps[i] * weight if np.isfinite(weight) else inf
                late = max(late, delay_ms[i] + float(self.ways.latency_ms[at[i], here]))
            delay_ms[operator.node] = late
        return Judged(below + within, within, delay_ms[self.zone.top])

    def told(self, also: Address | None = None, rate_bps: float | None = None) -> Told:
        """For the zone above: the best, where it stands, and what its ancestors may ask for."""
        zone = self.zone
        leaves = tuple(self.locations[i] for i in self.top.leaves.tolist())
        asked_for = {*zone.common, *zone.onward}
        if zone.algorithm != "edge":
            asked_for.update(leaves)
        asked_for.update(self.candidates)
        if also is not None:
            asked_for.add(also)
        numbers = [i for i, a in enumerate(self.locations) if a in asked_for]
        known = restricted(self.top, numbers)
        configurations = tuple(
            (self.locations[i], float(known.cost[i]), float(known.delay_ms[i]))
            for i in np.flatnonzero(np.isfinite(known.cost)).tolist()
        )
        ways = tuple((a, b, us) for (a, b), us in sorted(self.view.items()))
        return Told(self.best, leaves, configurations, self.candidates, ways, rate_bps)


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


def rates_now(
    zone: Zone, told: Mapping[int, Told], seen_bps: Mapping[int, float]
) -> dict[int, float]:
    """Of all inputs in the zone: what their hosts have seen, else what the query says."""
    found: dict[int, float] = {}
    for operator in zone.operators:
        for i, asked_bps in zip(operator.inputs, operator.rates_bps, strict=True):
            seen = told[i].rate_bps if i in told else seen_bps.get(i)
            found[i] = asked_bps if seen is None else seen
    return found


def place_zone(
    zone: Zone,
    told: Mapping[int, Told],
    view: View,
    unusable: Container[Address] = (),
    seen_bps: Mapping[int, float] | None = None,
) -> ZonePlan | None:
    """None where no configuration is left: nothing is in time, or hosts are missing.

    `seen_bps`: rates of the zone's own operators, where their hosts have told them.
    """
    rates = rates_now(zone, told, seen_bps or {})
    locations = locations_of(zone, told)
    hub = zone.onward[-1]
    ways = ways_of(view, locations, hub) if zone.is_measured else equal_ways(locations)
    ways = _without(ways, [i for i, a in enumerate(locations) if a in unusable])
    number = {a: i for i, a in enumerate(locations)}
    placer = placer_named(zone.algorithm, zone.k)
    known = {node: _heard(child, number) for node, child in told.items()}
    for operator in zone.operators:
        inputs = [known[i] for i in operator.inputs]
        asked = _asked(zone, operator, [rates[i] for i in operator.inputs], number, ways)
        found = placer(inputs, asked, ways)
        if not np.isfinite(found.cost[found.best]):
            return None
        known[operator.node] = found
    return ZonePlan(zone, locations, known, _candidates(zone, told), dict(view), ways, rates)


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


def _asked(
    zone: Zone,
    operator: ZoneOperator,
    rates_bps: list[float],
    number: Mapping[Address, int],
    ways: Ways,
) -> Asked:
    """As `placement.sand.placing` asks: with a bound, room is left for the way ahead (3.5)."""
    stops = [number[a] for a in operator.onward]
    room = np.full(len(number), inf)
    if zone.bound_ms < inf:
        tail = 0.0
        for nearer, farther in zip(stops[-2::-1], stops[:0:-1], strict=True):
            tail += float(ways.latency_ms[nearer, farther])
        room = zone.bound_ms * (1 + ROUNDING) - tail - ways.latency_ms[:, stops[0]]
    pinned = NONE if operator.pinned is None else number[operator.pinned]
    return Asked(floats(rates_bps), stops[0], room, pinned)
