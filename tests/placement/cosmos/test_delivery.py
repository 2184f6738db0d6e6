"""Each substream once over each link of its tree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.placement.cosmos.systems import system

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.delivery import Trees, delivered_cost, direct, results_cost
from thalweg.placement.cosmos.model import Substreams, Vertices


def queries(interests: list[list[int]]) -> Vertices:
    rows = csr_array(np.array(interests, np.float32))
    nothing = floats(np.zeros(len(interests)))
    return Vertices(rows, rows[:, :0], nothing, nothing)


# source ─1─ a ─2─ provider 0
#            └─4─ provider 1
FORK = Trees(
    (csr_array(np.array([[1, 1], [1, 0], [0, 1]], np.float32)),), (floats([1.0, 2.0, 4.0]),)
)
ONE = Substreams(floats([10.0]), ints([0]))


def test_a_shared_link_counts_once() -> None:
    two = queries([[1], [1]])
    assert delivered_cost(FORK, ONE, two, ints([0, 0])) == 10 * (1 + 2)
    assert delivered_cost(FORK, ONE, two, ints([0, 1])) == 10 * (1 + 2 + 4)


def test_what_nobody_wants_is_not_sent() -> None:
    assert delivered_cost(FORK, ONE, queries([[0]]), ints([1])) == 0


def test_without_a_topology_every_provider_is_reached_directly() -> None:
    made = system(2)
    mapping = ints(np.arange(40) % 9)
    wanted = np.zeros((9, 30), bool)
    interests = made.queries.interests.toarray() > 0
    for query, at in enumerate(mapping.tolist()):
        wanted[at] |= interests[query]
    ways = made.network.source_ms[made.substreams.source].T  # [provider, substream]
    expected = float((wanted * ways * made.substreams.rate_bps).sum())
    trees = direct(made.network.source_ms)
    found = delivered_cost(trees, made.substreams, made.queries, mapping)
    assert found == pytest.approx(expected, rel=1e-5)


def test_results_go_to_their_proxies_one_by_one() -> None:
    made = system(2)
    home = ints(made.queries.results.toarray().argmax(axis=1))
    assert results_cost(made.network.latency_ms, made.queries, home) == 0
    away = ints((home + 1) % 9)
    rates = made.queries.results.toarray().max(axis=1)
    expected = float((rates * made.network.latency_ms[away, home]).sum())
    assert results_cost(made.network.latency_ms, made.queries, away) == pytest.approx(expected)
