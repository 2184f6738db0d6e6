"""A tree that grows leaf by leaf, as columns in the order of joining; for Greedy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.trees.cost import serving_s, waiting_s
from thalweg.placement.trees.model import HOME, Cargo, Nodes


class Totals:
    """Of each node, over all its trees."""

    def __init__(self, count: int) -> None:
        self.busy, self.rate, self.below = np.zeros(count), np.zeros(count), np.zeros(count)


class Growing:
    def __init__(self, nodes: Nodes, cargo: Cargo, totals: Totals) -> None:
        size = int(cargo.members.sum())
        self._nodes, self.cargo, self.totals = nodes, cargo, totals
        self._ids = np.zeros(size, np.int64)
        self.place = np.zeros(len(nodes), np.int64)  # node -> its column
        self.above, self._depth = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.demand = np.zeros((size, cargo.own.shape[1]), cargo.own.dtype)
        self.fan = np.zeros(self.demand.shape, np.int32)
        self.rates = np.zeros(self.demand.shape)
        self.total, self.sends, self.below = np.zeros(size), np.zeros(size), np.zeros(size)
        self.busy, self.rate = np.zeros(size), np.zeros(size)
        self.children = np.zeros(size, np.int64)
        self._size = 1
        self._ids[0] = HOME

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> np.ndarray:
        return self._ids[: self._size]

    def levels(self) -> Iterator[np.ndarray]:
        """Columns from the children of the home down."""
        depth = self._depth[: self._size]
        for level in range(1, int(depth.max()) + 1):
            yield np.flatnonzero(depth == level)

    def parents(self) -> Ints:
        found = np.full(len(self._nodes), NONE)
        found[self.ids[1:]] = self._ids[self.above[1 : self._size]]
        return ints(found)

    def local(self, ids: np.ndarray) -> Floats:
        """What these nodes cost now, for all their trees' waiting and this tree's serving."""
        at, nodes, totals = self.place[ids], self._nodes, self.totals
        waits = waiting_s(totals.busy[ids], totals.rate[ids], graded=True)
        serves = serving_s(
            nodes.filter_s[ids], nodes.send_s[ids], self.busy[at], self.rate[at], self.children[at]
        )
        found: Floats = totals.below[ids] * waits + self.below[at] * serves
        return found

    def add(self, node: int, parent: int) -> None:
        cargo, new, at = self.cargo, self._size, int(self.place[parent])
        self._size += 1
        self._ids[new], self.place[node] = node, new
        self.above[new], self._depth[new] = at, self._depth[at] + 1
        self.demand[new] = wanted = cargo.own[node]
        self.rates[new] = cargo.rates(wanted)
        self.total[new] = sends = float(self.rates[new].sum())
        fan = (wanted != 0).astype(np.int32)
        self.children[at] += 1
        under = new
        while under:  # up to the home, which is column 0
            at = int(self.above[under])
            before, total = self.demand[at].copy(), self.total[at]
            self.demand[at] = cargo.join(before, wanted)
            self.rates[at] = cargo.rates(self.demand[at])
            self.total[at] = float(self.rates[at].sum())
            self.fan[at] += fan
            self.sends[at] += sends
            self._pass_on(at, cargo.weight[node])
            fan = ((self.demand[at] != 0) & (before == 0)).astype(np.int32)
            sends, under = self.total[at] - total, at

    def _pass_on(self, at: int, weight: float) -> None:
        """Count anew what goes through a node; `weight` more is below it."""
        node, totals, nodes = int(self._ids[at]), self.totals, self._nodes
        checks = float(self.rates[at] @ self.fan[at])
        busy = nodes.filter_s[node] * checks + nodes.send_s[node] * self.sends[at]
        rate = float(self.rates[at] @ (self.fan[at] > 0))
        totals.busy[node] += busy - self.busy[at]
        totals.rate[node] += rate - self.rate[at]
        totals.below[node] += weight
        self.busy[at], self.rate[at] = busy, rate
        self.below[at] += weight
