"""Online query routing over the coordinator tree (COSMOS 3.3.6), one by one and in bulk.

A new query goes to the root, which sends it to the child where it adds least to the weighted edge
cut, and so on down to a provider. With a bound, only children with room for it are considered; the
source has none, and lets redistribution put right what gets out of balance.

In bulk, all queries of a batch see the tables as they were before it. Each coordinator counts what
it has sent where at the end of a batch; what others sent elsewhere it learns when `refresh` is
called, as it would from the regular reports of its parent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats, Ints, floats, ints
from thalweg.placement.cosmos.cost import Counts, counts, loads
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Balance, Vertices
from thalweg.placement.cosmos.routing_table import Arrivals, RoutingTable, choose, choose_many
from thalweg.placement.cosmos.system import System
from thalweg.placement.cosmos.view import Region, view


class Router:
    """All coordinators of a system, each with its routing_table."""

    def __init__(
        self,
        system: System,
        provider: Ints,
        balance: Balance | None = None,
        *,
        announced: float = 0.0,
    ) -> None:
        """`provider` says where the system's queries are; without a balance, load is no matter.

        The bound is on shares of all load that there is; what is known to come may be announced.
        """
        self._system, self._balance = system, balance
        self._expected = float(system.queries.weight.sum()) + announced
        self._wanting: Counts = counts(system.queries.interests, provider, len(system.network))
        self._load = np.array(loads(system.queries.weight, provider, len(system.network)))
        self._all_load = float(self._load.sum())
        self._rate_bps = system.substreams.rate_bps
        self._share = system.network.capability / system.network.capability.sum()
        self.desks: dict[int, RoutingTable] = {}
        self._starts: dict[int, npt.NDArray[np.int64]] = {}  # of children, among the providers
        self.refresh()

    @property
    def root(self) -> Cluster:
        return self._system.root

    def refresh(self) -> None:
        """Every coordinator learns anew where all queries are."""
        self.desks = {}
        self._open(self._system.root, ())

    def _open(self, cluster: Cluster, elsewhere: tuple[Region, ...]) -> None:
        if cluster.is_provider:
            return
        system = self._system
        inside = [self._wanting[c.providers].sum(axis=0) for c in cluster.children]
        load = floats(self._load[c.providers].sum() for c in cluster.children)
        seen = view(cluster, system.network, system.substreams, load, elsewhere)
        self.desks[id(cluster)] = RoutingTable(seen, self._rate_bps, np.stack(inside), load)
        sizes = [len(c.providers) for c in cluster.children]
        self._starts[id(cluster)] = np.cumsum([0, *sizes[:-1]])
        for number, child in enumerate(cluster.children):
            siblings = (
                Region(c.centre, inside[i]) for i, c in enumerate(cluster.children) if i != number
            )
            self._open(child, (*elsewhere, *siblings))

    def route(self, queries: Vertices) -> Ints:
        """One by one, each seeing where all before it went."""
        arriving = Arrivals(queries, self._rate_bps)
        found = np.zeros(len(arriving), np.int32)
        for q, weight in enumerate(arriving.weight):
            room = self._room(weight)
            cluster = self._system.root
            while not cluster.is_provider:
                desk = self.desks[id(cluster)]
                most = np.maximum.reduceat(room[cluster.providers], self._starts[id(cluster)])
                child = choose(desk.cost(arriving, q), weight, most.tolist())
                desk.put(arriving, q, child)
                cluster = cluster.children[child]
            found[q] = cluster.centre
            first, last = arriving.wants_to[q : q + 2].tolist()
            mine = arriving.wants[first:last]
            self._wanting[cluster.centre][mine] += arriving.wanted[first:last]
            self._load[cluster.centre] += weight
            self._all_load += weight
        return ints(found)

    def children_one_by_one(self, cluster: Cluster, queries: Vertices) -> Ints:
        """One coordinator's part of `route`, by what it knows itself: the load of its children."""
        desk = self.desks[id(cluster)]
        limits = self._limits(self._capability_below(cluster), self.total_with(queries))
        arriving = Arrivals(queries, self._rate_bps)
        found = []
        for q, weight in enumerate(arriving.weight):
            room = (limits - desk.load).tolist()
            found.append(choose(desk.cost(arriving, q), weight, room))
            desk.put(arriving, q, found[-1])
        return ints(found)

    def route_in_bulk(self, queries: Vertices, batch: int = 10_000) -> Ints:
        found = np.zeros(len(queries), np.int32)
        for some in np.array_split(np.arange(len(queries)), -(-len(queries) // batch) or 1):
            chosen = queries.chosen(some) if len(some) < len(queries) else queries
            total = self.total_with(chosen)
            for provider, mine in self._descend(self._system.root, chosen, total):
                found[some[mine]] = provider
        return ints(found)

    def _descend(
        self, cluster: Cluster, queries: Vertices, total: float
    ) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Providers, each with the queries that come to it."""
        if cluster.is_provider:
            yield cluster.centre, np.arange(len(queries))
            return
        child = self.children_of(cluster, queries, total)
        self._count(cluster, queries, child)
        for number, below in enumerate(cluster.children):
            mine = np.flatnonzero(child == number)
            if below.is_provider:
                yield below.centre, mine
            elif len(mine):
                for provider, those in self._descend(below, queries.chosen(mine), total):
                    yield provider, mine[those]

    def children_of(self, cluster: Cluster, queries: Vertices, total: float) -> Ints:
        """One coordinator's part: the child of each query; `total` is all load that there is."""
        routing_table = self.desks[id(cluster)]
        cost = routing_table.costs(queries.interests, queries.results)
        limits = self._limits(self._capability_below(cluster), total)
        return choose_many(cost, queries.weight, limits - routing_table.load)

    def _capability_below(self, cluster: Cluster) -> Floats:
        capability = self._system.network.capability
        return floats(capability[c.providers].sum() for c in cluster.children)

    def total_with(self, queries: Vertices) -> float:
        """The load of all queries, these included."""
        return max(self._expected, self._all_load + float(queries.weight.sum()))

    def _count(self, cluster: Cluster, queries: Vertices, child: Ints) -> None:
        children = len(cluster.children)
        wanting = counts(queries.interests, child, children)
        load = floats(np.bincount(child, queries.weight, children))
        self.desks[id(cluster)].add(wanting, load)
        if cluster.children[0].is_provider:
            providers = [c.centre for c in cluster.children]
            self._wanting[providers] += wanting
            self._load[providers] = self._load[providers] + load
            self._all_load += float(load.sum())

    def _room(self, weight: float) -> Floats:
        """What each provider has room for, given that a query of this weight is there as well."""
        if self._balance is None:
            return np.full(len(self._share), np.inf)
        total = max(self._expected, self._all_load + weight)
        room: Floats = (1 + self._balance.slack) * total * self._share - self._load
        return room

    def _limits(self, capability: Floats, total: float) -> Floats:
        if self._balance is None:
            return np.full(len(capability), np.inf)
        share = capability / self._system.network.capability.sum()
        limits: Floats = (1 + self._balance.slack) * share * total
        return limits
