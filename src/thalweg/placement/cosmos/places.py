"""Queries at places, of graphs whose edges can't be listed.

All that a query pays at a place follows from one table: for each substream and place, its rate
times the ways to its source and to all other queries that want it. A query's cost is a sum of some
rows of the table, and placing it adds to those rows. So 60,000 queries on 256 providers are placed
one by one in seconds, exactly, though they have a billion edges.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.mapping import ROUNDING
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.view import View

Table = npt.NDArray[np.float32]  # [substream, place]


class Places:
    """Queries at places, with the cost of every other place at hand for any one of them."""

    def __init__(self, vertices: Vertices, substreams: Substreams, seen: View) -> None:
        self.mapping = np.full(len(vertices), NONE, np.int32)
        self.load = np.zeros(len(seen.limits))
        self.most = seen.limits * (1 + ROUNDING)
        self.weight = vertices.weight
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
            self.load[at] -= self.weight[v]
        self.table[self._substreams[low:high]] += self._flow[low:high, None] * nearer
        self.load[to] += self.weight[v]
        self.mapping[v] = to

    def put_all(self, vertices: Vertices, substreams: Substreams, mapping: Ints) -> None:
        """Many that were nowhere before, at once."""
        wanting = counts(vertices.interests, mapping, len(self.load))
        reached = (self._latency_ms @ wanting).T
        self.table += reached * substreams.rate_bps.astype(np.float32)[:, None]
        self.load = self.load + np.bincount(mapping, self.weight, len(self.load))
        self.mapping[:] = mapping

    def best(self, v: int, cost: Floats) -> int:
        """The cheapest place with room; where none has any, that with the least violation."""
        over = self.load + self.weight[v] - self.most
        at = self.mapping[v]
        if at != NONE:
            over[at] = self.load[at] - self.most[at]
        room = over <= 0
        return int(np.argmin(np.where(room, cost, np.inf) if room.any() else over))

    def all_costs(self, first: int, last: int) -> npt.NDArray[np.float32]:
        """Of many vertices at all places, as in `costs`."""
        some = slice(first, last)
        found = self._vertices.interests[some] @ self.table
        found += self._results[some] @ self._proxy_ms
        found -= self._own[some, None] * self._latency_ms[self.mapping[some]]
        return np.asarray(found)


def place_in_order(places: Places, order: Iterable[int]) -> None:
    """Each where it adds least, given those before it (step b of the greedy mapping)."""
    for v in order:
        places.put(v, places.best(v, places.costs(v)))
