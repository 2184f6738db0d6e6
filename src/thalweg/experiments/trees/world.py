"""One setting of the evaluation: nodes, what they want, and the rows of all its time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thalweg.experiments.trees.flowing import Messages, synthetic
from thalweg.experiments.trees.setting import drawn_nodes, drawn_rates
from thalweg.experiments.trees.traces import drawn_interests, drawn_trace
from thalweg.placement.trees.model import Cargo, Nodes, one_object, one_tree, tree_each


@dataclass(frozen=True, eq=False)
class TreeWorld:
    nodes: Nodes
    cargos: list[Cargo]
    messages: Messages
    seconds: float

    def slowed(self, which: list[int], factor: float) -> TreeWorld:
        """Some nodes take so many times as long from now on."""
        filter_s, send_s = self.nodes.filter_s.copy(), self.nodes.send_s.copy()
        filter_s[which] *= factor
        send_s[which] *= factor
        return replace(self, nodes=Nodes(self.nodes.delay_s, filter_s, send_s))


def one_object_world(
    seed: int, count: int, seconds: float, *, load: float = 1.0, rate_load: float = 1.0
) -> TreeWorld:
    """The source's synthetic data (4.4.3)."""
    rates = drawn_rates(seed, count, rate_load)
    messages = synthetic(rates, seconds, seed)
    return TreeWorld(drawn_nodes(seed, count, load), [one_object(rates)], messages, seconds)


def many_objects_world(
    seed: int,
    count: int,
    seconds: float,
    objects: int,
    *,
    load: float = 1.0,
    interest: float = 0.6,
    each: bool = False,
) -> TreeWorld:
    """Prices with requirements (4.4.4), in one tree or a tree each."""
    trace = drawn_trace(seed, objects, seconds)
    own = drawn_interests(seed, count, objects, interest)
    table = trace.union_rates()
    cargos = tree_each(own, table) if each else one_tree(own, table)
    messages = Messages(trace.at_s, trace.object, trace.label)
    return TreeWorld(drawn_nodes(seed, count, load), cargos, messages, seconds)


def top_nodes(parent: np.ndarray, count: int) -> list[int]:
    """The first nodes of a breadth-first search from the home, without it."""
    found: list[int] = []
    level = [0]
    while level and len(found) < count:
        level = [int(i) for p in level for i in np.flatnonzero(parent == p)]
        found += level
    return found[:count]
