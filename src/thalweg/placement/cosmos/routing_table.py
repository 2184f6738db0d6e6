"""What a coordinator keeps at hand to route queries: one table, and the load of its children.

The table says, for each substream and child, what one more query pays that wants the substream and
goes there: its rate times the ways to its source and to all other queries that want it. Thereby a
query's share of the weighted edge cut (COSMOS 3.3.6) is a sum of as many rows as it has interests,
without a look at any other query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# What `@` of a sparse array calls. For a single query, to get there takes longer than the sum.
from scipy.sparse._sparsetools import csc_matvecs, csr_matvecs

from thalweg.placement.arrays import Flags, Floats, Ints, ints
from thalweg.placement.cosmos.cost import Counts
from thalweg.placement.cosmos.model import Sparse, Vertices
from thalweg.placement.cosmos.view import View

Numbers = npt.NDArray[np.integer]

_ABREAST = 8  # rows of so many 32-bit numbers are added at once


class Arrivals:
    """Queries that come one by one, as the rows of their interests and results."""

    def __init__(self, queries: Vertices, rate_bps: Floats) -> None:
        self.weight: list[float] = queries.weight.tolist()
        wanted, asked = queries.interests, queries.results
        self.wants, self.wanted = _rows(wanted)
        self.proxies, self.result_bps = _rows(asked)
        self.flow_bps = (self.wanted * rate_bps[self.wants]).astype(np.float32)
        self.wants_to: Numbers = wanted.indptr.astype(self.wants.dtype, copy=False)
        self.proxies_to: Numbers = asked.indptr.astype(self.proxies.dtype, copy=False)

    def __len__(self) -> int:
        return len(self.weight)


def _rows(matrix: Sparse) -> tuple[Numbers, npt.NDArray[np.float32]]:
    return matrix.indices, matrix.data.astype(np.float32, copy=False)


class RoutingTable:
    def __init__(self, seen: View, rate_bps: Floats, wanting: Counts, load: Floats) -> None:
        """`wanting` and `load`: what is at each child already."""
        self.children = len(load)
        self._latency_ms = seen.latency_ms.astype(np.float32)
        self._proxy_ms = seen.proxy_ms
        self._rate_bps = rate_bps.astype(np.float32)
        self.load = np.array(load)
        self._wide = -(-self.children // _ABREAST) * _ABREAST
        self.table = self._widened(seen.field)
        self._ways_ms = list(self._widened(self._latency_ms))  # a row for each child
        self._from_proxies = self._widened(self._proxy_ms).reshape(-1)
        self._size, self._homes = len(self.table), len(self._proxy_ms)
        self._flat = self.table.reshape(-1)  # the same numbers, as compiled loops take them
        self._cost = np.zeros(self._wide, np.float32)
        self.add(wanting, np.zeros(self.children))

    def _widened(self, columns: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
        wide = np.zeros((len(columns), self._wide), np.float32)
        wide[:, : self.children] = columns
        return wide

    def add(self, wanting: Counts, load: Floats) -> None:
        """More queries at the children: how many want each substream, and their load."""
        reached = self._latency_ms @ wanting
        self.table[:, : self.children] += (reached * self._rate_bps).T
        self.load = self.load + load

    def put(self, arriving: Arrivals, q: int, child: int) -> None:
        """One more query at a child."""
        at, ways = arriving.wants_to[q : q + 2], self._ways_ms[child]
        wants, flow = arriving.wants, arriving.flow_bps
        csc_matvecs(self._size, 1, self._wide, at, wants, flow, ways, self._flat)
        self.load[child] += arriving.weight[q]

    def costs(self, interests: Sparse, results: Sparse) -> Floats:
        """[query, child]: what each of many queries adds to the weighted edge cut."""
        found = (interests @ self.table)[:, : self.children]
        found += results @ self._proxy_ms
        return np.asarray(found)

    def cost(self, arriving: Arrivals, q: int) -> list[float]:
        """The same for one of those that come one by one."""
        cost, wide = self._cost, self._wide
        cost.fill(0)
        at, wants, wanted = arriving.wants_to[q : q + 2], arriving.wants, arriving.wanted
        csr_matvecs(1, self._size, wide, at, wants, wanted, self._flat, cost)
        at, proxies, asked = arriving.proxies_to[q : q + 2], arriving.proxies, arriving.result_bps
        csr_matvecs(1, self._homes, wide, at, proxies, asked, self._from_proxies, cost)
        found: list[float] = cost.tolist()
        return found[: self.children]


def choose(cost: Sequence[float], weight: float, room: Sequence[float]) -> int:
    """The cheapest child with room; where none has any, that with the least violation."""
    best, least = -1, float("inf")
    for child, (asked, free) in enumerate(zip(cost, room, strict=True)):
        if free >= weight and asked < least:
            best, least = child, asked
    return best if best >= 0 else max(range(len(room)), key=room.__getitem__)


def choose_many(cost: Floats, weight: Floats, room: Floats) -> Ints:
    """The same for many queries at once; in each child, those that come first get the room."""
    child = ints(cost.argmin(axis=1)).copy()
    closed: Flags = np.zeros(len(room), bool)
    while not closed.all():
        over = (np.bincount(child, weight, len(room)) > room) & ~closed
        if not over.any():
            break
        closed |= over
        late = np.concatenate(
            [_late(child, c, weight, room) for c in np.flatnonzero(over).tolist()]
        )
        if closed.all():  # only what little room single queries leave in each child is left
            _squeeze(child, late, cost, weight, room)
        else:
            child[late] = np.where(closed, np.inf, cost[late]).argmin(axis=1)
    return ints(child)


def _late(child: Ints, full: int, weight: Floats, room: Floats) -> Ints:
    """Who comes to a full child after its room is taken."""
    there = np.flatnonzero(child == full)
    return ints(there[np.cumsum(weight[there]) > room[full]])


def _squeeze(child: Ints, late: Ints, cost: Floats, weight: Floats, room: Floats) -> None:
    stays = np.ones(len(child), bool)
    stays[late] = False
    left = room - np.bincount(child[stays], weight[stays], len(room))
    for q in late.tolist():
        child[q] = choose(cost[q].tolist(), float(weight[q]), left.tolist())
        left[child[q]] -= weight[q]
