"""Adaptive redistribution over the coordinator tree, in rounds (COSMOS 3.3.7).

In a round, every coordinator from the root down puts right what has changed: it re-balances and
refines (`rebalancing`), and hands on what it decided. A vertex that comes to a coordinator from
another one has no place there yet; it is placed first, and may be moved again without any harm,
as queries migrate only when all decisions are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.placement.arrays import NONE, Ints, ints
from thalweg.placement.cosmos.descent import Descent
from thalweg.placement.cosmos.graphs import Library, Run, Tags, at_once, build
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.limits import Limits
from thalweg.placement.cosmos.model import Vertices
from thalweg.placement.cosmos.overflow import within_bound
from thalweg.placement.cosmos.rebalancing import Caution, Standing, rebalance
from thalweg.placement.cosmos.sweeping import sweep
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import View, global_view


@dataclass(frozen=True, slots=True)
class Adaptation:
    settings: Settings = field(default_factory=Settings)
    caution: Caution = field(default_factory=Caution)


def redistribute(
    system: System, provider: Ints, adaptation: Adaptation, *, run: Run[Any] = at_once
) -> Ints:
    """One round: where each query is after it, given where it is now."""
    settings = adaptation.settings
    graph = build(system, provider, settings, stay=True, run=run)
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
        return rebalance(task, Standing(ints(place), density), adaptation.caution, rng)

    def settle(_cluster: Cluster, queries: Ints, seen: View, child: Ints) -> Ints:
        chosen = system.queries.chosen(queries)
        least = adaptation.caution.least_gain
        return sweep(chosen, system.substreams, seen, child, passes=1, least_gain=least)

    # No room is kept for packing: queries are where they are, and who kept to the bound may stay.
    limits = Limits(system.limits(settings.balance), settings.balance, [0.0] * system.root.height)
    found = Descent(system, library, limits, adapt, settle, run).from_root(graph)
    found = within_bound(system, found, settings.balance)
    if not settings.exchange:
        return found

    def exchange() -> Ints:
        seen, least = global_view(system, settings.balance), adaptation.caution.exchange_gain
        return sweep(system.queries, system.substreams, seen, found, passes=1, least_gain=least)

    exchanged: Ints = run(system.root, "exchange", exchange)
    return exchanged
