"""Where the queries of a coordinator's graph should go: in steps from where they are, or anew.

Both are COSMOS's (Algorithms 3.3 and 3.2); what is added here is when which one is worth it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.random import Generator

from thalweg.overlay.distribution.picture import ROUNDING
from thalweg.overlay.distribution.query_graph import QueryGraph
from thalweg.placement.arrays import NONE, Flags, Ints, floats, ints
from thalweg.placement.cosmos.mapping import MappingTask
from thalweg.placement.cosmos.rebalancing import Caution, RoundStart, is_chance, rebalance
from thalweg.placement.cosmos.view import decide

# A query that moves is silent for a lease: less than a tenth of what it costs is not worth it.
CAUTION = Caution(least_gain=0.1)
_IN_STEPS = replace(CAUTION, start_over=inf)
_LEAST_SAVING = 0.001  # of all cost: less is rounding, or noise in what was measured


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Where queries are when a coordinator decides."""

    place: Ints  # the child; NONE for those that come from elsewhere
    rests: Flags  # those that were moved just now, and stay
    cost: float  # what a unit of load pays in all the network; here may be a small part of it


def mapped_anew(graph: QueryGraph, now: Situation, rng: Generator) -> Ints | None:
    """Everything from scratch, where what there is is not much better than chance.

    Vertices take no heed of places: of a random mixture, only mixtures would come.
    """
    seen, vertices = graph.seen, graph.vertices
    into = graph.coarsened(rng)
    coarse = vertices.merged(into, int(into.max()) + 1)
    found = decide(coarse, graph.rates, seen)[into]
    found = ints(np.where(now.rests, now.place, found))
    load = np.bincount(found, vertices.weight, len(seen.limits))
    if (load > seen.limits * (1 + ROUNDING)).any():
        return None
    before = graph.cut(ints(np.where(now.place == NONE, found, now.place)))
    chance = seen.chance(vertices, graph.rates)
    stake = now.cost * float(vertices.weight.sum())
    starts_over = is_chance(before, graph.cut(found), chance, CAUTION, at_stake=stake)
    return found if starts_over else None


def rebalanced(graph: QueryGraph, now: Situation, rng: Generator) -> Ints:
    """Step by step: out of children with too much, then to where it pays."""
    vertices = graph.vertices
    into = graph.coarsened(rng, ints(2 * now.place + now.rests))
    coarse = vertices.merged(into, int(into.max()) + 1)
    task = graph.seen.task(coarse, graph.rates)
    at, rests = np.zeros(len(coarse), np.int32), np.zeros(len(coarse), bool)
    at[into], rests[into] = now.place, now.rests  # only what is alike in both collapses
    density = coarse.weight / np.maximum(coarse.state_bytes, 1.0)
    costs = floats(now.cost * coarse.weight)
    standing = RoundStart(ints(at), floats(density), costs, rests)
    mapping = rebalance(task, standing, _IN_STEPS, rng)
    as_they_are = ints(np.where(at == NONE, mapping, at))
    least = _LEAST_SAVING * float(costs.sum())
    return ints((mapping if _is_better(task, mapping, as_they_are, least) else as_they_are)[into])


def _is_better(task: MappingTask, new: Ints, old: Ints, least: float) -> bool:
    """Less load over the limits; or no more, and less of a cut. Else moves would never end."""
    over_new, over_old = (
        float(np.maximum(task.load(m) - task.most, 0.0).sum()) for m in (new, old)
    )
    if over_new != over_old:
        return over_new < over_old
    return task.cut(old) - task.cut(new) > least
