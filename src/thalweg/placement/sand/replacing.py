"""Placing again what runs, when rates, selectivities or the network have changed (SAND 2.3, 3).

A tree that runs is placed anew from what is measured now, and moves only if that pays: it must save
a share of its cost, and earn back within a horizon what moving its operators' state costs, in the
same measure (bits × distance). Without this, two placements of nearly the same cost would alternate
with every measurement. What can't stay (a bound that is broken, a way that is gone) moves anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Ints
from thalweg.placement.explain import Plans
from thalweg.placement.problem import Problem
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.placeable import limit_ms
from thalweg.placement.sand.query_trees import Placed, query_tree, running_tree
from thalweg.placement.sand.tree import Tree

Placement = Callable[[Tree, Ways], Ints]


@dataclass(frozen=True, slots=True)
class Patience:
    """How much better another placement must be before anything moves."""

    saving: float = 0.1  # of the cost that the running one has now
    horizon_s: float = 600.0  # in which moving has to pay

    def __post_init__(self) -> None:
        if not 0 <= self.saving < 1:
            raise ValueError(f"a saving is a share from 0 to 1 (without 1), not {self.saving}")
        if not self.horizon_s > 0:
            raise ValueError(f"a horizon is longer than nothing, not {self.horizon_s} s")


@dataclass(frozen=True, slots=True)
class Verdict:
    placed: Placed
    ran: bool
    moved: bool


def replaced(
    problem: Problem,
    query: int,
    running: Plans | None,
    ways: Ways,
    placement: Placement,
    patience: Patience,
) -> Verdict:
    """The query's new place, or the one where it runs."""
    runs = None if running is None else running_tree(running, query)
    if runs is None:
        fresh = query_tree(problem, query)
        return Verdict(Placed(fresh, placement(fresh.tree, ways)), ran=False, moved=False)
    better = Placed(runs.of, placement(runs.of.tree, ways))
    if np.array_equal(better.at, runs.at):
        return Verdict(runs, ran=True, moved=False)
    if can_stay(runs, ways) and not pays(problem, runs, better, ways, patience):
        return Verdict(runs, ran=True, moved=False)
    return Verdict(better, ran=True, moved=True)


def can_stay(runs: Placed, ways: Ways) -> bool:
    tree = runs.of.tree
    possible = np.isfinite(tree.cost(runs.at, ways.latency_ms))
    return bool(possible and tree.delay_ms(runs.at, ways.latency_ms) <= limit_ms(tree))


def pays(problem: Problem, runs: Placed, better: Placed, ways: Ways, patience: Patience) -> bool:
    tree, distance = runs.of.tree, ways.latency_ms
    now = tree.cost(runs.at, distance)
    saved = now - tree.cost(better.at, distance)
    operators = [n for n in tree.operators if runs.at[n] != better.at[n]]
    state_bits = 8 * problem.operators.state_bytes[runs.of.operators[operators]]
    way = distance[runs.at[operators], better.at[operators]]
    moving = float((np.where(state_bits > 0, way, 0.0) * state_bits).sum())
    return saved > patience.saving * now and saved * patience.horizon_s >= moving
