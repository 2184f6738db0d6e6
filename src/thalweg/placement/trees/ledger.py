"""The books of a forest: what it costs, and what it would cost if one subtree hung elsewhere.

Source: COSMOS (seed 000) 4.2.2 and 4.2.3, "the cost of the new scheme can be computed similar to
the incremental cost computation". Moving node i from under j to under h changes what passes through
the nodes from j and from h up to where both ways meet, and nothing else: above, the same nodes are
below as before. So a move costs as many steps as the tree is deep, and fewer where what a node
passes on stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from thalweg.placement.arrays import NONE, ints
from thalweg.placement.trees.arithmetic import arithmetic
from thalweg.placement.trees.cost import OVERLOADED_S
from thalweg.placement.trees.model import HOME, Cargo, Forest, Nodes, depths

_Wanted = tuple[Any, Any, Any, float]  # demand, rates, wants and total of a place


class Place(NamedTuple):
    """A node of one tree, with all that is below it."""

    weight: float  # W
    demand: Any
    rates: Any
    wants: Any  # 1 for each object that is wanted
    total: float  # of all rates
    fan: Any  # children that want an object, by object
    sends: float
    busy: float  # ρ of this tree
    rate: float  # rows to be passed on
    serve_s: float
    below: float  # B


class Move(NamedTuple):
    """A change that was worked out, and can be carried out."""

    tree: int
    node: int
    to: int
    delta: float  # of the summed loss
    places: list[tuple[int, Place]]


class _Above(NamedTuple):
    """What a change on one way means where the two ways meet."""

    fan: Any
    sends: float
    children: int
    delayed: float  # what the edges on the way cost more


class Ledger:
    """Costs are graded where a node is overloaded, so that a search finds its way out."""

    def __init__(self, nodes: Nodes, cargos: Sequence[Cargo], forest: Forest) -> None:
        self._delay: list[list[float]] = nodes.delay_s.tolist()
        self._filter: list[float] = nodes.filter_s.tolist()
        self._send: list[float] = nodes.send_s.tolist()
        self._weights = [c.weight.tolist() for c in cargos]
        self._arithmetic = [arithmetic(c) for c in cargos]
        self._own = [a.rows(c) for a, c in zip(self._arithmetic, cargos, strict=True)]
        self.parent: list[list[int]] = [p.tolist() for p in forest]
        self.members = [m.nonzero()[0].tolist() for m in (c.members for c in cargos)]
        self.children: list[list[list[int]]] = []
        self.places: list[list[Place]] = []
        for tree, cargo in enumerate(cargos):
            self._open(tree, cargo)
        self._sum_up()

    def forest(self) -> Forest:
        return tuple(ints(p) for p in self.parent)

    def _open(self, tree: int, cargo: Cargo) -> None:
        parent, count = self.parent[tree], len(self._filter)
        depth = depths(parent, cargo.members)
        children: list[list[int]] = [[] for _ in range(count)]
        for i in range(count):
            if depth[i] > 0:
                children[parent[i]].append(i)
        self.children.append(children)
        nothing = Place(0.0, self._own[tree][HOME], 0.0, 0, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.places.append([nothing] * count)
        for i in sorted(self.members[tree], key=lambda n: -depth[n]):
            self.places[tree][i] = self._anew(tree, i)

    def _anew(self, tree: int, node: int) -> Place:
        """From the children's places."""
        sums = self._arithmetic[tree]
        demand, weight = self._own[tree][node], self._weights[tree][node]
        fan: Any = sums.wants(demand) * 0
        sends = 0.0
        for child in self.children[tree][node]:
            place = self.places[tree][child]
            demand = sums.join(demand, place.demand)
            weight += place.weight
            fan = fan + place.wants
            sends += place.total
        wanted = self._wanted(tree, demand)
        return self._place(tree, node, weight, wanted, fan, sends, len(self.children[tree][node]))

    def _wanted(self, tree: int, demand: Any) -> _Wanted:
        sums = self._arithmetic[tree]
        rates = sums.rates(demand)
        return demand, rates, sums.wants(demand), sums.total(rates)

    def _place(
        self,
        tree: int,
        node: int,
        weight: float,
        wanted: _Wanted,
        fan: Any,
        sends: float,
        children: int,
    ) -> Place:
        if not children:
            return Place(weight, *wanted, fan, 0.0, 0.0, 0.0, 0.0, 0.0)
        rates = wanted[1]
        below = weight - self._weights[tree][node]
        sums, filter_s, send_s = self._arithmetic[tree], self._filter[node], self._send[node]
        busy = filter_s * sums.checks(rates, fan) + send_s * sends
        rate = sums.passed(rates, fan)
        others = busy / rate * (1 - 1 / children) / 2 if rate > 0 else 0.0
        serve_s = others + filter_s + send_s
        return Place(weight, *wanted, fan, sends, busy, rate, serve_s, below)

    def _sum_up(self) -> None:
        """Totals of each node over its trees; now and then anew, for roundings add up."""
        count = len(self._filter)
        self.busy, self.rate, self.below = [0.0] * count, [0.0] * count, [0.0] * count
        self.total = 0.0
        for tree, places in enumerate(self.places):
            parent = self.parent[tree]
            for i in self.members[tree]:
                place = places[i]
                self.busy[i] += place.busy
                self.rate[i] += place.rate
                self.below[i] += place.below
                self.total += place.below * place.serve_s
                if parent[i] != NONE:
                    self.total += place.weight * self._delay[parent[i]][i]
        self.total += sum(
            b * _wait_s(busy, rate)
            for b, busy, rate in zip(self.below, self.busy, self.rate, strict=True)
        )

    def refresh(self) -> None:
        self._sum_up()

    def passing_s(self, tree: int, node: int) -> float:
        """g: how long a row of this tree is at a node that passes it on."""
        place = self.places[tree][node]
        return _wait_s(self.busy[node], self.rate[node]) + place.serve_s

    def reached_s(self, tree: int, node: int) -> float:
        """How long rows take from the home until this node can send them on."""
        delay, at = self.passing_s(tree, node), node
        while (above := self.parent[tree][at]) != NONE:
            delay += self._delay[above][at] + self.passing_s(tree, above)
            at = above
        return delay

    def move(self, tree: int, node: int, to: int) -> Move | None:
        """What it would change if `node`, with all below it, hung under `to`; None if it can't."""
        parent = self.parent[tree]
        left = parent[node]
        if to == left:
            return None
        ways: list[int] = []
        at = to
        while at != NONE:
            if at == node:
                return None
            ways.append(at)
            at = parent[at]
        old: list[int] = []
        at = left
        while at not in ways:
            old.append(at)
            at = parent[at]
        meeting = at
        new = ways[: ways.index(meeting)]
        return self._worked_out(tree, node, to, old, new, meeting)

    def _worked_out(
        self, tree: int, node: int, to: int, old: list[int], new: list[int], meeting: int
    ) -> Move:
        """Up the way that it leaves, up the way that it joins, and where the two meet."""
        places, delay, left = self.places[tree], self._delay, self.parent[tree][node]
        changed: list[tuple[int, Place]] = []
        lost = self._along(tree, node, old, -1, changed)
        gained = self._along(tree, node, new, 1, changed)
        place = places[meeting]
        found = self._place(
            tree,
            meeting,
            place.weight,
            place[1:5],  # the same nodes are below as before
            place.fan + lost.fan + gained.fan,
            place.sends + lost.sends + gained.sends,
            len(self.children[tree][meeting]) + lost.children + gained.children,
        )
        changed.append((meeting, found))
        delta = places[node].weight * (delay[to][node] - delay[left][node])
        delta += lost.delayed + gained.delayed
        for at, found in changed:
            delta += self._at(at, places[at], found)
        return Move(tree, node, to, delta, changed)

    def _along(
        self, tree: int, node: int, way: list[int], sign: int, changed: list[tuple[int, Place]]
    ) -> _Above:
        """The places up a way that `node` leaves (−1) or joins (1); what this means above."""
        places, sums, parent = self.places[tree], self._arithmetic[tree], self.parent[tree]
        moved = places[node]
        fan: Any = sign * moved.wants
        sends, children = sign * moved.total, sign
        under, wanted = node, moved.demand if sign > 0 else None
        is_same, delayed = False, 0.0  # is_same: from here on up, what is demanded stays
        for at in way:
            place = places[at]
            delayed += sign * moved.weight * self._delay[parent[at]][at]
            if is_same and not children:  # only the weight changes
                weight = place.weight + sign * moved.weight
                below = place.below + sign * moved.weight
                changed.append((at, Place(weight, *place[1:10], below)))
                continue
            if sign > 0:
                demand = sums.join(place.demand, wanted)
            else:
                demand = self._without(tree, at, under, wanted)
            is_same = sums.same(demand, place.demand)
            now = place[1:5] if is_same else self._wanted(tree, demand)
            found = self._place(
                tree,
                at,
                place.weight + sign * moved.weight,
                now,
                place.fan + fan,
                place.sends + sends,
                len(self.children[tree][at]) + children,
            )
            changed.append((at, found))
            if is_same:
                fan, sends, children = 0, 0.0, 0
            else:
                fan, sends, children = now[2] - place.wants, now[3] - place.total, 0
            under, wanted = at, demand
        return _Above(fan, sends, children, delayed)

    def _without(self, tree: int, at: int, child: int, wants_now: Any) -> Any:
        """What a node demands when a child wants this instead, or is gone."""
        places, join = self.places[tree], self._arithmetic[tree].join
        demand = self._own[tree][at]
        for other in self.children[tree][at]:
            if other != child:
                demand = join(demand, places[other].demand)
        return demand if wants_now is None else join(demand, wants_now)

    def _at(self, node: int, before: Place, after: Place) -> float:
        """How a node's part of the cost changes with its place in one tree."""
        busy, rate, below = self.busy[node], self.rate[node], self.below[node]
        now_below = below - before.below + after.below
        was = below * _wait_s(busy, rate)
        now = now_below * _wait_s(busy - before.busy + after.busy, rate - before.rate + after.rate)
        return now - was + after.below * after.serve_s - before.below * before.serve_s

    def carry_out(self, move: Move) -> None:
        tree, node = move.tree, move.node
        parent, places = self.parent[tree], self.places[tree]
        self.children[tree][parent[node]].remove(node)
        self.children[tree][move.to].append(node)
        parent[node] = move.to
        for at, after in move.places:
            before = places[at]
            self.busy[at] += after.busy - before.busy
            self.rate[at] += after.rate - before.rate
            self.below[at] += after.below - before.below
            places[at] = after
        self.total += move.delta


def _wait_s(busy: float, rate: float) -> float:
    if busy >= 1:
        return OVERLOADED_S * busy
    return busy * busy / ((1 - busy) * rate) if rate > 1e-12 else 0.0
