"""The outside partitioner: balanced parts of alike queries, at providers near one another."""

from __future__ import annotations

import numpy as np
from tests.placement.cosmos.systems import proxies, system

from thalweg.experiments.cosmos.yardstick import (
    assigned,
    informed,
    parted,
    strongest,
    swapped,
    without_hierarchy,
)
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.system import Settings


def test_every_query_keeps_its_heaviest_edges() -> None:
    made = system(1, queries=60)
    edges = strongest(made.queries.interests, made.substreams.rate_bps, 12)
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


def test_more_than_overlaps_makes_the_cut_smaller_and_keeps_the_bound() -> None:
    made, settings = system(3, providers=8, queries=400, substreams=100), Settings()
    plain = assigned(made, parted(made, settings, np.full(8, 1 / 8), 12))
    knowing, flat = (m(made, settings) for m in (informed, without_hierarchy))
    cut = [
        weighted_edge_cut(made.network, made.substreams, made.queries, m).total
        for m in (knowing, plain, proxies(made), flat)
    ]
    assert cut[0] < cut[1] < cut[2]
    assert cut[3] < cut[2]
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
