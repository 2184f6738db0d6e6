"""What a coordinator sees when it decides: its children, what each runs, and how far they are.

COSMOS 3.3.3 to 3.3.7. Sources and proxies count where they are managed, at a child (Algorithm 3.2,
step a). What lies outside of a coordinator's cluster is about equally far from all its children,
which are near each other, and does not help to choose between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from scipy.sparse import csr_array

from thalweg.overlay.distribution.entries import Entry, Provider, Query, Rate, Running
from thalweg.overlay.protocol import Address
from thalweg.placement.arrays import Floats, floats
from thalweg.placement.cosmos.routing_table import RoutingTable, choose
from thalweg.placement.cosmos.view import View

ROUNDING = 1e-9  # of a limit: sums of floats differ in their last digits


@dataclass(slots=True)
class Subtree:
    """A child of a coordinator, with all that is below it."""

    address: Address
    capability: dict[Address, float] = field(default_factory=dict)
    load: dict[Address, float] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)  # by name
    wanting: Counter[int] = field(default_factory=Counter)  # queries, by substream

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            match entry:
                case Provider(address, capability):
                    self.capability[address] = capability
                    self.load.setdefault(address, 0.0)
                case Running(query, _, owner, weight):
                    self.running[query.name] = entry
                    self.load[owner] = self.load.get(owner, 0.0) + weight
                    self.wanting.update(query.substreams)

    @property
    def total_capability(self) -> float:
        return sum(self.capability.values())

    @property
    def total_load(self) -> float:
        return sum(self.load.values())

    def room(self, allowed: float) -> float:
        """Of the provider below that has most; `allowed`: load for each unit of capability."""
        rooms = [allowed * c - self.load[a] for a, c in self.capability.items() if c > 0]
        return max(rooms, default=-np.inf)


@dataclass(frozen=True, slots=True)
class Heading:
    """A query that was told to move just now, which no report shows yet."""

    running: Running
    child: Address | None  # where it goes; None: away from here


@dataclass(frozen=True, slots=True)
class Picture:
    children: Sequence[Subtree]
    latency_ms: Floats  # [child, child]
    rates: Mapping[int, Rate]

    def after(self, headings: Mapping[str, Heading]) -> Picture:
        """As it will be when those that are on their way have arrived.

        Who takes a query below a child is not known here, so the child itself stands for it.
        """
        at = {name: child.address for child in self.children for name in child.running}
        moving = {n: h for n, h in headings.items() if at.get(n) != h.child}
        if not moving:
            return self
        children = []
        for child in self.children:
            found = Subtree(child.address)
            found.add(Provider(a, c) for a, c in child.capability.items())
            found.add(r for n, r in child.running.items() if n not in moving)
            arriving = [h.running for h in moving.values() if h.child == child.address]
            found.add(msgspec.structs.replace(r, owner=child.address) for r in arriving)
            children.append(found)
        return Picture(children, self.latency_ms, self.rates)

    def child_of(self, address: Address) -> int | None:
        """Who manages it; None: nobody here."""
        found = (i for i, c in enumerate(self.children) if address in c.capability)
        return next(found, None)

    def view(self, substreams: Sequence[int], limits: Floats) -> View:
        """Of these substreams alone. Proxies stand for the children that manage them."""
        field_ = np.zeros((len(substreams), len(self.children)))
        for row, substream in enumerate(substreams):
            rate = self.rates.get(substream)
            home = None if rate is None else self.child_of(rate.source)
            if rate is not None and home is not None:
                field_[row] = rate.bps * self.latency_ms[home]
        return View(self.latency_ms, self.latency_ms, floats(field_), limits)

    def rate_bps(self, substreams: Sequence[int]) -> Floats:
        """One that was never measured counts as nothing."""
        return floats(self.rates[s].bps if s in self.rates else 0.0 for s in substreams)

    def result(self, query: Query) -> Floats:
        """[child]: what the proxy, where it is managed here, wants of the results."""
        found = np.zeros(len(self.children))
        home = self.child_of(query.proxy)
        if home is not None:
            found[home] = query.result_bps
        return found

    def cheapest(self, query: Query, weight: float, room: Floats) -> int:
        """COSMOS 3.3.6: where it adds least to the weighted edge cut, among those with room."""
        substreams = query.substreams
        load = floats(c.total_load for c in self.children)
        wanting = np.array([[c.wanting[s] for s in substreams] for c in self.children], np.float32)
        seen = self.view(substreams, load)
        wanting = wanting.reshape(len(self.children), len(substreams))
        desk = RoutingTable(seen, self.rate_bps(substreams), wanting, load)
        everything = csr_array(np.ones((1, len(substreams)), np.float32))
        cost = desk.costs(everything, csr_array(self.result(query)[None]))
        return choose(cost[0].tolist(), weight * (1 - ROUNDING), room.tolist())


def between(
    addresses: Sequence[Address], distance_us: Callable[[Address, Address], int | None]
) -> Floats:
    """Latencies in ms. A pair that nobody has measured yet counts as far as the farthest."""
    found = np.zeros((len(addresses), len(addresses)))
    for i, a in enumerate(addresses):
        for j, b in enumerate(addresses):
            apart = 0 if i == j else distance_us(a, b)
            found[i, j] = np.nan if apart is None else apart / 1000
    farthest = float(np.nanmax(found, initial=0.0))
    return floats(np.where(np.isnan(found), farthest, found))
