"""What a coordinator keeps at hand to route queries: one table, and the load of its children.

The table says, for each substream and child, what one more query pays that wants the substream and
goes there: its rate times the ways to its source and to all other queries that want it. Thereby a
query's share of the weighted edge cut (COSMOS 3.3.6) is a sum of as many rows as it has interests,
without a look at any other query.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Flags, Floats, Ints, ints
from thalweg.placement.cosmos.cost import Counts
from thalweg.placement.cosmos.model import Sparse, Vertices
from thalweg.placement.cosmos.view import View

_ABREAST = 8  # rows of so many 32-bit numbers are added at once


class RoutingTable:
    def __init__(self, seen: View, rate_bps: Floats, wanting: Counts, load: Floats) -> None:
        """`wanting` and `load`: what is at each child already."""
        self.children = len(load)
        self._latency_ms = seen.latency_ms.astype(np.float32)
        self._proxy_ms = seen.proxy_ms
        self._rate_bps = rate_bps.astype(np.float32)
        self.load = np.array(load)
        wide = -(-self.children // _ABREAST) * _ABREAST
        self.table = np.zeros((len(rate_bps), wide), np.float32)
        self._ways_ms = np.zeros((self.children, wide), np.float32)  # as wide as the table
        self._ways_ms[:, : self.children] = self._latency_ms
        self.table[:, : self.children] = seen.field
        self.add(wanting, np.zeros(self.children))

    def add(self, wanting: Counts, load: Floats) -> None:
        """More queries at the children: how many want each substream, and their load."""
        reached = self._latency_ms @ wanting
        self.table[:, : self.children] += (reached * self._rate_bps).T
        self.load = self.load + load

    def put(
        self, substreams: Ints, flow_bps: npt.NDArray[np.float32], weight: float, child: int
    ) -> None:
        """One more query at a child."""
        # Whole rows: they are gathered and put back by blocks, which parts of rows are not.
        self.table[substreams] += flow_bps[:, None] * self._ways_ms[child]
        self.load[child] += weight

    def costs(self, interests: Sparse, results: Sparse) -> Floats:
        """[query, child]: what each of many queries adds to the weighted edge cut."""
        found = (interests @ self.table)[:, : self.children]
        found += results @ self._proxy_ms
        return np.asarray(found)

    def cost(
        self,
        substreams: Ints,
        wanted: npt.NDArray[np.float32],
        proxies: Ints,
        result_bps: Floats,
    ) -> Floats:
        """The same for one: what it wants, and what its proxies want of its results."""
        found = wanted @ self.table.take(substreams, axis=0)
        return np.asarray(found[: self.children] + result_bps @ self._proxy_ms[proxies])


def choose(cost: Floats, weight: float, room: Floats) -> int:
    """The cheapest child with room; where none has any, that with the least violation."""
    fits = room >= weight
    return int(np.argmin(np.where(fits, cost, np.inf) if fits.any() else -room))


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
        child[q] = choose(cost[q], float(weight[q]), left)
        left[child[q]] -= weight[q]


def rows_of(vertices: Vertices, rate_bps: Floats) -> npt.NDArray[np.float32]:
    """The rates that each vertex draws of what it wants, entry by entry of its interests."""
    rows = vertices.interests
    return np.asarray((rows.data * rate_bps[rows.indices]).astype(np.float32))
