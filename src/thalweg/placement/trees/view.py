"""What one node knows: itself, its children and its grandchildren; and what changes would cost.

Source: COSMOS (seed 000) 4.2.2. A node decides about its children and grandchildren only. All that
these decisions touch is here, so a change is worth the same by this view as by the whole model, in
constant time. Everything is columns, and candidates are looked at in bulk.

Row 0 is the deciding node, rows 1 … c are its children, the others grandchildren. Below the
grandchildren only sums are known: how many children, what they are sent, and which want an object.
Of its other trees a node tells how busy they keep it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thalweg.placement.arrays import Floats
from thalweg.placement.trees.cost import serving_s, waiting_s
from thalweg.placement.trees.model import Demands

TOP = 0
Rows = np.ndarray  # numbers of rows


@dataclass(frozen=True, slots=True, eq=False)
class Hung:
    """Nodes as children, with all below them: what their parent needs to know, by candidate."""

    weight: Floats
    demand: Demands
    wants: np.ndarray  # 1 for each object that is wanted
    total: Floats  # rows a second
    own_cost: Floats  # of passing on what they pass on


@dataclass(frozen=True, eq=False)
class View:
    parent: Rows  # row of the parent; of row 0, -1
    weight: Floats  # W
    below: Floats  # B
    own: Demands
    demand: Demands
    fan: np.ndarray  # children that want an object, [rows, objects]
    sends: Floats
    children: np.ndarray  # how many
    filter_s: Floats
    send_s: Floats
    delay_s: Floats  # between rows; nan where it is not known
    other_busy: Floats  # in other trees
    other_rate: Floats
    other_below: Floats
    join: Callable[[Demands, Demands], Demands]
    rates: Callable[[Demands], Floats]

    @cached_property
    def kids(self) -> Rows:
        return np.flatnonzero(self.parent == TOP)

    @cached_property
    def grandkids(self) -> Rows:
        return np.flatnonzero(self.parent > TOP)

    @cached_property
    def total(self) -> Floats:
        return _sum(self._rates)

    @cached_property
    def _rates(self) -> Floats:
        return self.rates(self.demand)

    @cached_property
    def wants(self) -> np.ndarray:
        return _wants(self.demand)

    @cached_property
    def cost(self) -> Floats:
        """Of each row as it is now."""
        every = np.arange(len(self.parent))
        return self._passing(every, self._rates, self.fan, self.sends, self.children, self.below)

    @cached_property
    def on_links(self) -> float:
        """What is lost on all links that are known: what a node is overloaded by has no measure."""
        below = np.flatnonzero(self.parent >= TOP)
        return float(np.nansum(self.weight[below] * self.delay_s[self.parent[below], below]))

    @cached_property
    def without(self) -> Demands:
        """Of each grandchild: what its parent would demand if it were not there."""
        if self.demand.shape[1] > 1:
            many: Demands = self.demand.copy()
            self._joined_without(self.join, self.own, self.demand, many)
            return many
        # Of one object plain numbers are ten times as quick.
        join = max if self.demand.dtype.kind == "f" else operator.or_  # rates, or sets of classes
        demand = self.demand[:, 0].tolist()
        found = demand.copy()
        self._joined_without(join, self.own[:, 0].tolist(), demand, found)
        return np.array(found, self.demand.dtype)[:, None]

    def _joined_without(self, join: Any, own: Any, demand: Any, found: Any) -> None:
        children: dict[int, list[int]] = {}
        for row, parent in enumerate(self.parent.tolist()):
            if parent > TOP:
                children.setdefault(parent, []).append(row)
        for kid, rows in children.items():
            before = own[kid]
            for row in rows:
                found[row] = before
                before = join(before, demand[row])
            after = own[kid]
            for row in reversed(rows):
                found[row] = join(found[row], after)
                after = join(after, demand[row])

    def as_is(self, rows: Rows) -> Hung:
        """Rows that are moved as they are."""
        return Hung(
            self.weight[rows],
            self.demand[rows],
            self.wants[rows],
            self.total[rows],
            self.cost[rows],
        )

    def changed(self, rows: Rows, lost: Rows | None = None, gained: Hung | None = None) -> Hung:
        """Rows without one of their children, or with another, or both."""
        demand, weight, below = self.demand[rows], self.weight[rows], self.below[rows]
        fan, sends = self.fan[rows], self.sends[rows]
        children = self.children[rows]
        if lost is not None:
            demand = self.without[lost]
            weight, below = weight - self.weight[lost], below - self.weight[lost]
            fan, sends = fan - self.wants[lost], sends - self.total[lost]
            children = children - 1
        if gained is not None:
            demand = self.join(demand, gained.demand)
            weight, below = weight + gained.weight, below + gained.weight
            fan, sends = fan + gained.wants, sends + gained.total
            children = children + 1
        rates = self.rates(demand)
        cost = self._passing(rows, rates, fan, sends, children, below)
        return Hung(weight, demand, _wants(demand), _sum(rates), cost)

    def top(self, lost: list[Hung], gained: list[Hung]) -> Floats:
        """What the deciding node costs with other children; the same nodes are below it."""
        fan, sends, children = self.fan[TOP], self.sends[TOP], self.children[TOP]
        for sign, hung in [(-1, h) for h in lost] + [(1, h) for h in gained]:
            fan = fan + hung.wants if sign > 0 else fan - hung.wants
            sends = sends + sign * hung.total
            children = children + sign
        return self._passing(TOP, self._rates[:1], fan, sends, children, self.below[TOP])

    def _passing(
        self,
        rows: Rows | int,
        rates: Floats,
        fan: np.ndarray,
        sends: Floats,
        children: Any,
        below: Any,
    ) -> Floats:
        """B·g, with the queue that other trees' rows wait in too."""
        busy = self.filter_s[rows] * _dot(rates, fan) + self.send_s[rows] * sends
        busy = np.where(children > 0, busy, 0.0)
        rate = _dot(rates, fan > 0)
        waits = waiting_s(self.other_busy[rows] + busy, self.other_rate[rows] + rate, graded=True)
        serves = serving_s(self.filter_s[rows], self.send_s[rows], busy, rate, children)
        found: Floats = (self.other_below[rows] + below) * waits + below * serves
        return found


def _wants(demand: Demands) -> np.ndarray:
    return np.asarray(demand != 0, bool).astype(np.int64)


def _dot(rates: Floats, fan: np.ndarray) -> Floats:
    """Over objects; a product where there is one only, which is most of a decision's time."""
    if rates.shape[1] == 1:
        one: Floats = rates[:, 0] * fan[:, 0]
        return one
    if len(rates) == 1:
        same: Floats = fan @ rates[0]
        return same
    many: Floats = np.einsum("ij,ij->i", rates, fan.astype(float))
    return many


def _sum(rates: Floats) -> Floats:
    found: Floats = rates[:, 0] if rates.shape[1] == 1 else rates.sum(axis=1)
    return found
