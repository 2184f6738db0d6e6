"""Placing and moving queries of graphs whose edges can't be listed.

All that a query pays at a place follows from one table: for each substream and place, its rate
times the ways to its source and to all other queries that want it. A query's cost is a sum of some
rows of the table, and placing it adds to those rows. So 60,000 queries on 256 providers are placed
one by one in seconds, exactly, though they have a billion edges.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.mapping import ROUNDING
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.view import View

Table = npt.NDArray[np.float32]  # [substream, place]

_AT_ONCE = 2_000  # vertices
ROUNDED = 1e-6  # of a query's cost: smaller gains are none


class Places:
    """Queries at places, with the cost of every other place at hand for any one of them."""

    def __init__(self, vertices: Vertices, substreams: Substreams, seen: View) -> None:
        self.mapping = np.full(len(vertices), NONE, np.int32)
        self.load = np.zeros(len(seen.limits))
        self._most = seen.limits * (1 + ROUNDING)
        self._weight = vertices.weight
        self._vertices = vertices
        self._proxy_ms = seen.proxy_ms.astype(np.float32)
        self._results = vertices.results.tocsr()
        self._latency_ms = seen.latency_ms.astype(np.float32)
        self.table: Table = seen.field.astype(np.float32)
        rows = vertices.interests
        self._starts = rows.indptr.tolist()
        self._substreams, self._counts = rows.indices, rows.data
        self._flow = (rows.data * substreams.rate_bps[rows.indices]).astype(np.float32)
        own = np.concatenate([[0.0], np.cumsum(rows.data * self._flow, dtype=float)])
        # the weight of a vertex's edges to itself
        self._own = np.diff(own[rows.indptr]).astype(np.float32)

    def costs(self, v: int) -> Floats:
        """What the vertex pays at each place, given where all others are."""
        low, high = self._starts[v], self._starts[v + 1]
        found = self._counts[low:high] @ self.table[self._substreams[low:high]]
        found += self._pull(v)
        at = self.mapping[v]
        if at != NONE:  # it is in the table itself
            found = found - self._own[v] * self._latency_ms[at]
        return np.asarray(found, float)

    def _pull(self, v: int) -> npt.NDArray[np.float32]:
        mine = slice(self._results.indptr[v], self._results.indptr[v + 1])
        rates = self._results.data[mine].astype(np.float32)
        return np.asarray(rates @ self._proxy_ms[self._results.indices[mine]])

    def put(self, v: int, to: int) -> None:
        low, high = self._starts[v], self._starts[v + 1]
        at = int(self.mapping[v])
        nearer = self._latency_ms[to]
        if at != NONE:
            nearer = nearer - self._latency_ms[at]
            self.load[at] -= self._weight[v]
        self.table[self._substreams[low:high]] += self._flow[low:high, None] * nearer
        self.load[to] += self._weight[v]
        self.mapping[v] = to

    def put_all(self, vertices: Vertices, substreams: Substreams, mapping: Ints) -> None:
        """Many that were nowhere before, at once."""
        wanting = counts(vertices.interests, mapping, len(self.load))
        reached = (self._latency_ms @ wanting).T
        self.table += reached * substreams.rate_bps.astype(np.float32)[:, None]
        self.load = self.load + np.bincount(mapping, self._weight, len(self.load))
        self.mapping[:] = mapping

    def best(self, v: int, cost: Floats) -> int:
        """The cheapest place with room; where none has any, that with the least violation."""
        over = self.load + self._weight[v] - self._most
        at = self.mapping[v]
        if at != NONE:
            over[at] = self.load[at] - self._most[at]
        room = over <= 0
        return int(np.argmin(np.where(room, cost, np.inf) if room.any() else over))

    def all_costs(self, first: int, last: int) -> npt.NDArray[np.float32]:
        """Of many vertices at all places, as in `costs`."""
        some = slice(first, last)
        found = self._vertices.interests[some] @ self.table
        found += self._results[some] @ self._proxy_ms
        found -= self._own[some, None] * self._latency_ms[self.mapping[some]]
        return np.asarray(found)

    def gains(self) -> Floats:
        """What each vertex would save at its best place, room or not."""
        gain = np.zeros(len(self.mapping))
        for first in range(
            0, len(gain), _AT_ONCE
        ):  # some at a time: all of them are a large matrix
            cost = self.all_costs(first, first + _AT_ONCE)
            here = cost[np.arange(len(cost)), self.mapping[first : first + _AT_ONCE]]
            gain[first : first + _AT_ONCE] = here - cost.min(axis=1)
        return gain


def place_in_order(places: Places, order: Iterable[int]) -> None:
    """Each where it adds least, given those before it (step b of the greedy mapping)."""
    for v in order:
        places.put(v, places.best(v, places.costs(v)))


def sweep(
    vertices: Vertices,
    substreams: Substreams,
    seen: View,
    mapping: Ints,
    *,
    passes: int = 4,
    least_gain: float = ROUNDED,
) -> Ints:
    """Moves that pay, the largest gain first, until hardly any is left or `passes` are over.

    Vertices at places with too much load come first, and move even where that does not pay. All
    others must save `least_gain` of their cost.
    """
    places = Places(vertices, substreams, seen)
    places.put_all(vertices, substreams, mapping)
    for _ in range(passes):
        gain = places.gains()
        crowded = (places.load > seen.limits * (1 + ROUNDING))[places.mapping]
        order = np.lexsort((-gain, ~crowded))
        moved = _moves(places, order[(gain > 0)[order] | crowded[order]].tolist(), seen, least_gain)
        if moved <= len(vertices) // 500:
            break
    return ints(places.mapping)


def _moves(places: Places, order: list[int], seen: View, least_gain: float) -> int:
    moved, most = 0, seen.limits * (1 + ROUNDING)
    for v in order:
        cost = places.costs(v)
        at, to = int(places.mapping[v]), places.best(v, cost)
        pays = cost[at] - cost[to] > max(least_gain, ROUNDED) * abs(cost[at])
        if to != at and (pays or places.load[at] > most[at]):
            places.put(v, to)
            moved += 1
    return moved
