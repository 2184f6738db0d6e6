"""Adaptive redistribution over the coordinator tree, in rounds (COSMOS 3.3.7).

In a round, every coordinator from the root down puts right what has changed: it re-balances and
refines (`rebalancing`), and hands on what it decided. A vertex that comes to a coordinator from
another one has no place there yet; it is placed first, and may be moved again without any harm,
as queries migrate only when all decisions are made.

A coarse vertex has one place, so only queries that are at one child collapse. Where queries are
spread at random, what is at one child has little in common: with 50 vertices a child for twenty
kinds of queries, most vertices are mixtures, and no mapping of them closes more than about 85 % of
the distance to a good one. So where the root finds its mapping hardly better than chance, all
queries are distributed anew (3.3.5), by graphs that take no heed of places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.cost import loads, weighted_edge_cut
from thalweg.placement.cosmos.descent import Descent
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.graphs import Library, QueryGraph, Run, Tags, at_once, build
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.limits import Limits
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.mapping import ROUNDING
from thalweg.placement.cosmos.model import Balance, Vertices
from thalweg.placement.cosmos.overflow import within_bound
from thalweg.placement.cosmos.rebalancing import Caution, RoundStart, mapped_anew, rebalance
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import View, global_view, view


@dataclass(frozen=True, slots=True)
class Adaptation:
    settings: Settings = field(default_factory=Settings)
    caution: Caution = field(default_factory=Caution)
    anew: bool = True  # where all stand as if by chance, distribute anew; without, 3.3 alone


def redistribute(
    system: System, provider: Ints, adaptation: Adaptation, *, run: Run[Any] = at_once
) -> Ints:
    """One round: where each query is after it, given where it is now."""
    settings = adaptation.settings
    graph = build(system, provider, settings, stay=True, run=run)
    # No room is kept for packing: queries are where they are, and who kept to the bound may stay.
    limits = Limits(system.limits(settings.balance), settings.balance, [0.0] * system.root.height)
    if adaptation.anew and run(
        system.root, "map", lambda: _is_by_chance(system, graph, limits, adaptation.caution)
    ):
        return distribute(system, provider, settings, run=run)
    library = Library.of(graph)

    def adapt(cluster: Cluster, tags: Tags, vertices: Vertices, seen: View) -> Ints:
        place = np.full(len(tags), NONE, np.int32)
        for number in np.unique(tags.graph).tolist():
            if library.graphs[number].cluster is cluster:
                mine = tags.graph == number
                place[mine] = library.graphs[number].place[tags.vertex[mine]]
        density = vertices.weight / np.maximum(vertices.state_bytes, 1.0)
        task = seen.task(vertices, system.substreams)
        rng = np.random.default_rng([settings.seed, cluster.centre, cluster.height])
        return rebalance(task, RoundStart(ints(place), density), adaptation.caution, rng)

    def settle(_cluster: Cluster, queries: Ints, seen: View, child: Ints) -> Ints:
        chosen = system.queries.chosen(queries)
        least = adaptation.caution.least_gain
        return sweep(chosen, system.substreams, seen, child, passes=1, least_gain=least)

    found = Descent(system, library, limits, adapt, settle, run).from_root(graph)
    found = within_bound(system, found, settings.balance)
    better: Ints = run(
        system.root, "exchange", lambda: _better(system, provider, found, settings.balance)
    )
    if not settings.exchange:
        return better

    def exchange() -> Ints:
        seen, least = global_view(system, settings.balance), adaptation.caution.exchange_gain
        return sweep(system.queries, system.substreams, seen, better, passes=1, least_gain=least)

    exchanged: Ints = run(system.root, "exchange", exchange)
    return exchanged


def _is_by_chance(system: System, graph: QueryGraph, limits: Limits, caution: Caution) -> bool:
    """Whether the root would map everything anew."""
    root, vertices = system.root, graph.coarse.vertices
    if root.is_provider or not len(vertices):
        return False
    seen = view(root, system.network, system.substreams, limits.of_children(root))
    task = seen.task(vertices, system.substreams)
    return mapped_anew(task, graph.place, caution) is not None


def _better(system: System, before: Ints, after: Ints, balance: Balance) -> Ints:
    """Less load over the limits, or as much and a smaller cut.

    A coordinator takes a child's centre for all that is below it. Where hardly anything is left to
    gain, that error decides, and moves that seem to pay don't.
    """

    def merit(mapping: Ints) -> tuple[float, float]:
        load = loads(system.queries.weight, mapping, len(system.network))
        over = np.maximum(load - system.limits(balance) * (1 + ROUNDING), 0.0).sum()
        network, substreams = system.network, system.substreams
        return float(over), weighted_edge_cut(network, substreams, system.queries, mapping).total

    return min((before, after), key=merit)
