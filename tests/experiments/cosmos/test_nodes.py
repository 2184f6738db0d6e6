"""Nodes in the simulator that distribute queries among themselves."""

from __future__ import annotations

import pytest

from thalweg.experiments.cosmos.nodes import nodes
from thalweg.experiments.cosmos.protocol_tree import NoTree
from thalweg.placement.arrays import ints
from thalweg.placement.cosmos.workload import Workload, draw


def test_every_query_gets_a_provider_and_rates_reach_the_coordinators() -> None:
    made = nodes(8, 3, 0.25, 1)
    workload = Workload(queries=10, substreams=30, sources=2, providers=8, groups=2, wanted=(2, 4))
    drawn, source_at = draw(workload, 1), ints([3, 5])
    system = made.system(drawn, source_at)
    assert sorted(system.root.providers.tolist()) == list(range(8))
    assert (system.network.source_ms == system.network.latency_ms[[3, 5]]).all()
    made.measure_rates(drawn, source_at)
    for query in range(10):
        made.submit(drawn, query)
    with pytest.raises(NoTree, match="10 queries have no provider"):
        made.mapping(10)
    made.run(20)
    assert set(made.mapping(10).tolist()) <= set(range(8))
