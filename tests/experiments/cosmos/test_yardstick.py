"""The outside partitioner: balanced parts of alike queries, at providers near one another."""

from __future__ import annotations

import numpy as np
from tests.placement.cosmos.systems import proxies, system

from thalweg.experiments.cosmos.yardstick import (
    informed,
    partitioned,
    strongest,
    swapped,
    without_hierarchy,
)
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.system import Settings


def test_every_query_keeps_its_heaviest_edges() -> None:
    made = system(1, queries=60)
    edges = strongest(made.queries.interests, made.substreams.rate_bps)
    rate = made.substreams.rate_bps
    rows = made.queries.interests.toarray()
    full = (rows * rate) @ rows.T
    np.fill_diagonal(full, 0)
    for query in range(60):
        kept = edges[[query]].indices
        weakest = np.sort(full[query])[-12]
        heavier = np.flatnonzero(full[query] > weakest + 1e-3)
        assert set(heavier.tolist()) <= set(kept.tolist())
    assert abs(edges - edges.T).max() == 0


def test_its_mapping_is_balanced_and_better_than_naive() -> None:
    made = system(2, providers=8, queries=400, substreams=100)
    mapping = partitioned(made, Settings())
    load = np.bincount(mapping, made.queries.weight, 8)
    assert load.max() <= 1.2 * load.mean()
    cut = [
        weighted_edge_cut(made.network, made.substreams, made.queries, m).total
        for m in (mapping, proxies(made))
    ]
    assert cut[0] < cut[1]


def test_more_information_makes_the_cut_smaller_and_keeps_the_bound() -> None:
    made = system(3, providers=8, queries=400, substreams=100)
    plain, knowing, flat = (m(made, Settings()) for m in (partitioned, informed, without_hierarchy))
    cut = [
        weighted_edge_cut(made.network, made.substreams, made.queries, m).total
        for m in (plain, knowing, flat, proxies(made))
    ]
    assert cut[1] < cut[0]
    assert cut[2] < cut[3]
    load = np.bincount(knowing, made.queries.weight, 8)
    assert load.max() <= 1.1 * load.mean() + made.queries.weight.max()


def test_swapping_parts_counts_ways_to_sources_and_proxies() -> None:
    """The sums that decide are those of the whole cut: it falls with every swap."""
    made = system(4, providers=8, queries=200, substreams=60)
    part = np.arange(200, dtype=np.int32) % 8
    before = weighted_edge_cut(made.network, made.substreams, made.queries, part).total
    after = swapped(made, part, part, Settings())
    assert sorted(np.bincount(after, minlength=8)) == [25] * 8
    assert weighted_edge_cut(made.network, made.substreams, made.queries, after).total < before
