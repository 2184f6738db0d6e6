"""Mapping one coordinator's query graph to its children (COSMOS, Algorithm 3.2).

First greedily, each vertex where it adds least to the weighted edge cut among the children that
have room. Then in passes: the vertex with the largest gain moves, even where that gain is negative,
and rests for the remainder of the pass; the best mapping that was seen starts the next pass, until
a pass finds none better.

The source places the heaviest vertex first. Vertices of much the same weight then come in an order
that has nothing to do with their interests; every child is filled with the same mixture, and no
single move improves on that. Here the vertex that would lose most by waiting is the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import NONE, Flags, Floats, Ints, ints
from thalweg.placement.cosmos.overlaps import Edges

ROUNDING = 1e-9  # of a limit: sums of floats differ in their last digits
_LEAST_GAIN = 1e-7  # of the cut: the rounding of edges must not make passes go on

Mapping = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class MappingTask:
    """A query graph to be mapped: its edges, and what each vertex costs at each child besides."""

    edges: Edges  # between the vertices
    pull: Floats  # [vertex, child]: the cost of edges to all that does not move
    weight: Floats
    latency_ms: Floats  # [child, child]
    limits: Floats  # of each child's load

    def cut(self, mapping: npt.NDArray[np.integer]) -> float:
        """The part of the weighted edge cut that a mapping decides."""
        apart = self.latency_ms[np.ix_(mapping, mapping)]
        fixed = self.pull[np.arange(len(mapping)), mapping].sum()
        return float(fixed + 0.5 * np.einsum("uv,uv->", self.edges, apart))

    def load(self, mapping: npt.NDArray[np.integer]) -> Floats:
        return np.asarray(np.bincount(mapping, self.weight, len(self.limits)), float)

    @property
    def most(self) -> Floats:
        return self.limits * (1 + ROUNDING)


def map_greedily(task: MappingTask, placed: npt.NDArray[np.integer] | None = None) -> Ints:
    """One vertex after the other, the one that would lose most by waiting first.

    What it would lose is the difference between the mean and the least cost over the children that
    have room, for each unit of weight. Who finds no room goes where the violation is least. Those
    that are placed already (not NONE) stay where they are.
    """
    count, children = task.pull.shape
    everyone = np.arange(count)
    mapping = np.full(count, NONE, np.int32)
    load = np.zeros(children)
    cost = np.array(task.pull)
    unit = np.where(task.weight > 0, task.weight, 1.0)
    if placed is not None:
        there = np.flatnonzero(placed != NONE)
        mapping[there] = placed[there]
        load += np.bincount(placed[there], task.weight[there], children)
        cost += task.edges[:, there] @ task.latency_ms[placed[there]]
    waiting: Flags = mapping == NONE
    while waiting.any():
        room = task.weight[:, None] <= task.most - load
        open_ = np.where(room, cost, np.inf)
        best = open_.argmin(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(room, cost, 0.0).sum(axis=1) / room.sum(axis=1)
            loses = (mean - open_[everyone, best]) / unit
        v = int(np.argmax(np.where(waiting & room.any(axis=1), loses, -np.inf)))
        if not (waiting[v] and room[v].any()):
            break
        _put(task, v, int(best[v]), mapping, load, cost)
        waiting[v] = False
    for v in np.flatnonzero(waiting)[np.argsort(-task.weight[waiting], kind="stable")].tolist():
        _put(task, v, int(np.argmin(load + task.weight[v] - task.limits)), mapping, load, cost)
    return ints(mapping)


def _put(task: MappingTask, v: int, at: int, mapping: Mapping, load: Floats, cost: Floats) -> None:
    mapping[v] = at
    load[at] += task.weight[v]
    cost += np.outer(task.edges[v], task.latency_ms[at])


class Moves:
    """A mapping that changes vertex by vertex, with the gain of every next move at hand."""

    def __init__(self, task: MappingTask, mapping: npt.NDArray[np.integer]) -> None:
        self.task = task
        self.mapping: Mapping = np.array(mapping, np.int32)
        self.load = task.load(mapping)
        everyone = np.arange(len(mapping))
        cost = task.pull + task.edges @ task.latency_ms[mapping]
        self.gain: Floats = cost[everyone, mapping][:, None] - cost
        self._elsewhere: Flags = np.ones(task.pull.shape, bool)
        self._elsewhere[everyone, mapping] = False
        self.gained = 0.0

    def offers(self) -> Floats:
        """[vertex, child]: the gain of each move that keeps the bound, −∞ for all others."""
        room = self.task.weight[:, None] <= self.task.most - self.load
        return np.where(room & self._elsewhere, self.gain, -np.inf)

    def move(self, v: int, to: int) -> None:
        task, at = self.task, int(self.mapping[v])
        self.gained += float(self.gain[v, to])
        self.mapping[v] = to
        self.load[at] -= task.weight[v]
        self.load[to] += task.weight[v]
        nearer = task.latency_ms[to] - task.latency_ms[at]
        self.gain += task.edges[v][:, None] * (nearer[self.mapping][:, None] - nearer)
        self.gain[v] -= self.gain[v, to]
        self._elsewhere[v, at], self._elsewhere[v, to] = True, False

    def rest(self, v: int) -> None:
        """The vertex is not offered again."""
        self._elsewhere[v] = False


def relieve(task: MappingTask, mapping: npt.NDArray[np.integer]) -> Ints:
    """Moves away from children with too much load, those first that cost least for their weight.

    Ends when all are within their limits, or when nobody has room for what is too much.
    """
    moves = Moves(task, mapping)
    unit = np.where(task.weight > 0, task.weight, 1.0)[:, None]
    while (moves.load > task.most).any():
        helps = (moves.load > task.most)[moves.mapping] & (task.weight > 0)
        worth = np.where(helps[:, None], moves.offers() / unit, -np.inf)
        v, to = divmod(int(np.argmax(worth)), worth.shape[1])
        if worth[v, to] == -np.inf:
            break
        moves.move(v, to)
    return ints(moves.mapping)


def refine(task: MappingTask, mapping: npt.NDArray[np.integer], *, passes: int = 20) -> Ints:
    """Lines 2 to 19 of Algorithm 3.2; the load bound is never broken on the way."""
    best = np.array(mapping, np.int32)
    for _ in range(passes if len(best) else 0):
        found, gained = _pass(task, best)
        if gained <= _LEAST_GAIN * abs(task.cut(best)):
            break
        best = found
    return ints(best)


def _pass(task: MappingTask, start: Mapping) -> tuple[Mapping, float]:
    """Every vertex moves once, the largest gain first; the best mapping on the way, its gain."""
    moves = Moves(task, start)
    best, found = 0.0, start
    for _ in range(len(start)):
        offers = moves.offers()
        v, to = divmod(int(np.argmax(offers)), offers.shape[1])
        if offers[v, to] == -np.inf:
            break
        moves.move(v, to)
        moves.rest(v)
        if moves.gained > best:
            best, found = moves.gained, moves.mapping.copy()
    return found, best
