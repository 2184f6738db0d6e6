"""How a tree fares over time: rows flow, nodes measure, and where it is wanted the tree adapts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from thalweg.experiments.trees.flowing import Flowing, Messages
from thalweg.experiments.trees.rounds import Rounds, changed
from thalweg.experiments.trees.world import TreeWorld
from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.trees.cost import flows
from thalweg.placement.trees.model import Cargo, Nodes, one_object, one_tree
from thalweg.placement.trees.union_rates import of_counts

PERIOD_S = 200.0  # between adaptations
WINDOW_S = 50.0  # of information collection
FEWEST_SAMPLES = 25
LEAST = 0.0  # of a view's cost: what a transformation must be worth
KEPT = 0.9  # of older counts, from period to period: a window sees few rows of one object


@dataclass
class Course:
    """AvgLF of each period, and the tree at the end."""

    losses: list[float]
    parent: Ints
    done: Counter[str] = field(default_factory=Counter)

    def mean(self, start: int = 0, end: int | None = None) -> float:
        return float(np.mean(self.losses[start:end]))


class Told:
    """What nodes know of each other: measured, and told only when it has changed by τ."""

    def __init__(self, world: TreeWorld, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 58])
        self._filter_s, self._send_s = world.nodes.filter_s, world.nodes.send_s
        self._first = True
        cargo = world.cargos[0]
        self._counts = np.zeros((cargo.own.shape[1], 0))
        self._seconds = 0.0
        self._rates = np.zeros(len(world.nodes))

    def nodes(self, world: TreeWorld, parent: Ints) -> Nodes:
        """Times are means over the rows of a window, so they are a little off."""
        flow = flows(world.cargos[0], parent)
        filter_s = self._sampled(world.nodes.filter_s, flow.checks)
        send_s = self._sampled(world.nodes.send_s, flow.sends)
        self._filter_s = changed(self._filter_s, filter_s)
        self._send_s = changed(self._send_s, send_s)
        return Nodes(world.nodes.delay_s, self._filter_s, self._send_s)

    def _sampled(self, true_s: Floats, rate: Floats) -> Floats:
        samples = np.maximum(FEWEST_SAMPLES, rate * WINDOW_S)
        noise = self._rng.standard_normal(len(true_s)) / np.sqrt(samples)
        found: Floats = true_s * np.maximum(0.1, 1 + noise)
        return found

    def cargo(self, cargo: Cargo, messages: Messages, seconds: float) -> Cargo:
        self._seconds = KEPT * self._seconds + seconds
        if cargo.union_rate is None:
            counts = (messages.mark[:, None] < cargo.own[:, 0]).sum(axis=0)
            self._counts = (
                KEPT * self._counts if self._counts.size else np.zeros((1, len(cargo.own)))
            )
            self._counts = self._counts + counts
            measured = self._counts[0] / self._seconds
            self._rates = measured if self._first else changed(self._rates, measured)
            self._first = False
            return one_object(np.maximum(self._rates, 1e-6))
        sets = cargo.union_rate.shape[1]
        new = np.bincount(messages.object * sets + messages.mark, minlength=cargo.union_rate.size)
        old = KEPT * self._counts if self._counts.size else np.zeros(cargo.union_rate.shape)
        self._counts = old + new.reshape(cargo.union_rate.shape)
        return one_tree(cargo.own, of_counts(self._counts, self._seconds))[0]


def course(
    world: TreeWorld,
    parent: Ints,
    *,
    adapts: bool,
    seed: int,
    after: tuple[float, TreeWorld] | None = None,
) -> Course:
    """One tree for all; `after` replaces the world from some second on."""
    flowing, told = Flowing(len(world.nodes), seed), Told(world, seed)
    rounds = Rounds((parent,), least=LEAST)
    losses: list[float] = []
    now = world
    for period in range(int(world.seconds / PERIOD_S)):
        start_s = period * PERIOD_S
        if after is not None and start_s >= after[0]:
            now = after[1]
        messages = world.messages.between(start_s, start_s + PERIOD_S)
        tree = rounds.forest[0]
        lost = flowing.play(now.nodes, now.cargos[0], tree, messages, PERIOD_S)
        losses.append(float(lost[1:].mean()))
        if adapts:
            cargo = told.cargo(now.cargos[0], messages, PERIOD_S)
            rounds.round(told.nodes(now, tree), [cargo])
    return Course(losses, rounds.forest[0], rounds.done)
