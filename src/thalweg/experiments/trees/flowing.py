"""Rows that flow down a tree, and how much fidelity is lost: the source's ns-2, in columns.

A node takes rows first come, first served. It checks each row for every child that wants its
object, in random order, and sends it to those that need it; both take exponential times (COSMOS
4.4.1). A tree feeds no row back, so nodes can be played one after the other from the home down, all
rows of a stretch of time at once: when a row's turn comes follows from arrivals and work by a
running maximum (Lindley's recursion). What is still being worked on at the end of a stretch is
carried into the next one.

The loss of a reader is the share of the time in which a row that it needs is on its way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.trees.cost import flows
from thalweg.placement.trees.model import HOME, Cargo, Nodes, depths


@dataclass(frozen=True, eq=False)
class Messages:
    """Rows at the home: when, of which object, and who needs them."""

    at_s: Floats
    object: np.ndarray
    mark: np.ndarray  # of nested demands a number below the highest rate; else a label

    def between(self, start_s: float, end_s: float) -> Messages:
        first, last = np.searchsorted(self.at_s, [start_s, end_s])
        return Messages(self.at_s[first:last], self.object[first:last], self.mark[first:last])


def needs(cargo: Cargo, demand: np.ndarray, messages: Messages) -> np.ndarray:
    """Of one node's demand by object: which rows it needs."""
    wanted = demand[messages.object]
    if cargo.union_rate is None:
        return np.asarray(messages.mark < wanted)
    return np.asarray((wanted & messages.mark) != 0)


class Flowing:
    """A tree's queues, from stretch to stretch; parents may change in between."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 56])
        self._free_s = np.zeros(nodes)  # when a node is done with what it has
        self._last_s: list[dict[int, float]] = [{} for _ in range(nodes)]  # arrival, by object

    def play(
        self, nodes: Nodes, cargo: Cargo, parent: Ints, messages: Messages, seconds: float
    ) -> Floats:
        """The loss of each node in this stretch."""
        demand = flows(cargo, parent).demand
        depth = depths(parent, cargo.members)
        lost = np.zeros(len(nodes))
        wanted = np.maximum(1, (cargo.own != 0).sum(axis=1))
        at: dict[int, tuple[np.ndarray, Floats]] = {
            HOME: (np.arange(len(messages.at_s)), messages.at_s)
        }
        for node in np.argsort(depth, kind="stable"):
            if depth[node] < 0:
                continue
            rows, arrived_s = at.pop(int(node))
            if node != HOME:
                lost[node] = self._lost(cargo, int(node), messages, rows, arrived_s, wanted[node])
            children = np.flatnonzero(parent == node)
            if len(children):
                passed = self._passed_on(
                    nodes, cargo, int(node), children, demand, messages, rows, arrived_s
                )
                at.update(passed)
        return lost / seconds

    def _passed_on(
        self,
        nodes: Nodes,
        cargo: Cargo,
        node: int,
        children: np.ndarray,
        demand: np.ndarray,
        messages: Messages,
        rows: np.ndarray,
        arrived_s: Floats,
    ) -> dict[int, tuple[np.ndarray, Floats]]:
        rng, shape = self._rng, (len(rows), len(children))
        here = Messages(messages.at_s[rows], messages.object[rows], messages.mark[rows])
        sent = np.stack([needs(cargo, demand[c], here) for c in children], axis=1)
        checked = (demand[children] != 0).T[here.object]
        check_s = rng.exponential(nodes.filter_s[node], shape) * checked
        send_s = rng.exponential(nodes.send_s[node], shape) * sent
        work_s = check_s + send_s
        turn = np.argsort(rng.random(shape), axis=1)  # children in random order
        done_s = np.empty(shape)
        np.put_along_axis(
            done_s, turn, np.cumsum(np.take_along_axis(work_s, turn, axis=1), axis=1), axis=1
        )
        begun_s = self._begun(node, arrived_s, work_s.sum(axis=1))
        found = {}
        for column, child in enumerate(children):
            taken = sent[:, column]
            left_s = begun_s[taken] + done_s[taken, column]
            found[int(child)] = (rows[taken], left_s + nodes.delay_s[node, child])
        return found

    def _begun(self, node: int, arrived_s: Floats, work_s: Floats) -> Floats:
        """When each row's turn comes: after all before it, and not before it is there."""
        if not len(arrived_s):
            return arrived_s
        before_s = np.concatenate(([0.0], np.cumsum(work_s)[:-1]))
        free_s = np.maximum.accumulate(np.maximum(arrived_s - before_s, self._free_s[node]))
        begun_s: Floats = free_s + before_s
        self._free_s[node] = begun_s[-1] + work_s[-1]
        return begun_s

    def _lost(
        self,
        cargo: Cargo,
        node: int,
        messages: Messages,
        rows: np.ndarray,
        arrived_s: Floats,
        objects: int,
    ) -> float:
        """Seconds in which a needed row is on its way, averaged over the objects."""
        here = Messages(messages.at_s[rows], messages.object[rows], messages.mark[rows])
        needed = needs(cargo, cargo.own[node], here)
        born_s, came_s, which = here.at_s[needed], arrived_s[needed], here.object[needed]
        if not len(born_s):
            return 0.0
        order = np.lexsort((born_s, which))
        born_s, came_s, which = born_s[order], came_s[order], which[order]
        came_s = np.maximum.accumulate(came_s + which * 1e9) - which * 1e9  # no row overtakes
        before_s = np.concatenate(([-np.inf], came_s[:-1]))
        first = np.concatenate(([True], which[1:] != which[:-1]))
        last = self._last_s[node]
        for i in np.flatnonzero(first):
            before_s[i] = last.get(int(which[i]), -np.inf)
        for i in np.flatnonzero(np.concatenate((first[1:], [True]))):
            last[int(which[i])] = float(came_s[i])
        return float(np.maximum(0.0, came_s - np.maximum(born_s, before_s)).sum()) / objects


def synthetic(rates: Floats, seconds: float, seed: int) -> Messages:
    """One object: rows at the highest rate, each needed by those whose rate is above its mark."""
    rng = np.random.default_rng([seed, 57])
    highest = float(rates.max())
    count = rng.poisson(highest * seconds)
    at_s = np.sort(rng.random(count) * seconds)
    return Messages(at_s, np.zeros(count, np.int64), rng.random(count) * highest)
