"""The cut from counts is the cut over all edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import cut_by_pairs, system, systems

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.cost import imbalance, loads, spread, weighted_edge_cut
from thalweg.placement.cosmos.system import System


def drawn_mapping(made: System, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return ints(rng.integers(len(made.network), size=len(made.queries)))


@settings(max_examples=60, deadline=None)
@given(systems, st.integers(0, 1000))
def test_counts_per_place_and_substream_give_the_cut_over_all_pairs(
    made: System, seed: int
) -> None:
    mapping = drawn_mapping(made, seed)
    cut = weighted_edge_cut(made.network, made.substreams, made.queries, mapping)
    assert cut.total == pytest.approx(cut_by_pairs(made, mapping), rel=1e-5)


@settings(max_examples=30, deadline=None)
@given(systems, st.integers(0, 1000))
def test_a_coarse_graph_costs_what_the_queries_in_it_cost(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, len(made.queries) + 1))
    into = rng.integers(count, size=len(made.queries))
    coarse = made.queries.merged(into, count)
    mapping = ints(rng.integers(len(made.network), size=count))
    of_coarse = weighted_edge_cut(made.network, made.substreams, coarse, mapping)
    of_queries = weighted_edge_cut(made.network, made.substreams, made.queries, ints(mapping[into]))
    assert of_coarse.total == pytest.approx(of_queries.total, rel=1e-5)
    assert coarse.weight.sum() == pytest.approx(made.queries.weight.sum())


def test_one_edge_of_each_kind() -> None:
    made = system(1, queries=2)
    together = weighted_edge_cut(made.network, made.substreams, made.queries, ints([0, 0]))
    assert together.overlaps == 0
    apart = weighted_edge_cut(made.network, made.substreams, made.queries, ints([0, 1]))
    both = (made.queries.interests[[0]].multiply(made.queries.interests[[1]])).toarray()[0]
    wanted = float((both * made.substreams.rate_bps).sum()) * made.network.latency_ms[0, 1]
    assert apart.overlaps == pytest.approx(wanted)


def test_load_is_judged_by_capability() -> None:
    load = loads(floats([3.0, 1.0, 2.0]), ints([0, 1, 0]), 2)
    assert load.tolist() == [5.0, 1.0]
    assert imbalance(load, floats([5.0, 1.0])) == pytest.approx(1.0)
    assert imbalance(load, floats([1.0, 1.0])) == pytest.approx(5 / 3)
    assert imbalance(load, floats([6.0, 0.0])) == np.inf
    assert spread(load, floats([5.0, 1.0])) == pytest.approx(0.0)
    assert spread(load, floats([1.0, 1.0])) == pytest.approx(2 / 3)
