"""Coarsening: heavy edges first, within limits, and nothing gets lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.placement.cosmos.systems import system, systems

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.coarsening import coarsen
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.overlaps import collapsed, overlaps
from thalweg.placement.cosmos.system import System


def vertices(interests: list[list[int]], weight: list[float]) -> Vertices:
    rows = csr_array(np.array(interests, np.float32))
    return Vertices(rows, rows[:, :0], floats(weight), floats(np.zeros(len(weight))))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def substreams(count: int) -> Substreams:
    return Substreams(floats(np.ones(count)), ints(np.zeros(count, np.int32)))


@settings(max_examples=40, deadline=None)
@given(systems, st.integers(1, 20), st.integers(0, 99))
def test_nothing_gets_lost_and_no_vertex_grows_too_heavy(
    made: System, most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    place = ints(rng.integers(3, size=len(made.queries)))
    coarse = coarsen(made.queries, made.substreams, most, rng, place=place)
    found, into = coarse.vertices, coarse.into
    assert (found.interests.sum(axis=0) == made.queries.interests.sum(axis=0)).all()
    assert np.bincount(into, made.queries.weight) == pytest.approx(found.weight)
    limit = max(1.5 * made.queries.weight.sum() / most, made.queries.weight.max())
    assert found.weight.max() <= limit * (1 + 1e-9)
    for vertex in range(len(found)):
        assert len(set(place[into == vertex].tolist())) == 1
    if len(found) > most:  # then no two of one place would fit together
        kept = np.array([place[into == v][0] for v in range(len(found))])
        for where in set(kept.tolist()):
            two = np.sort(found.weight[kept == where])[:2]
            assert len(two) < 2 or two.sum() > limit


def test_a_vertex_collapses_with_the_neighbour_of_the_heaviest_edge() -> None:
    graph = vertices(
        [[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]],
        [1, 1, 1, 1],
    )
    into = coarsen(graph, substreams(6), 2, rng()).into.tolist()
    assert into[0] == into[1] != into[2] == into[3]


def test_edges_weigh_rates_not_numbers_of_substreams() -> None:
    rows = csr_array(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], np.float32))
    edges = overlaps(rows, floats([1.0, 2.0, 50.0]))
    assert edges == pytest.approx(np.array([[0, 3, 0], [3, 0, 50], [0, 50, 0]]))


def test_vertices_without_neighbours_collapse_too() -> None:
    graph = vertices([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], [1, 1, 1, 1])
    assert len(coarsen(graph, substreams(4), 2, rng()).vertices) == 2


def test_coarsening_ends_where_everything_would_grow_too_heavy() -> None:
    graph = vertices([[1, 1]] * 4, [9, 9, 9, 1])
    coarse = coarsen(graph, substreams(2), 3, rng())
    assert sorted(coarse.vertices.weight.tolist()) == [9, 9, 10]
    assert len(coarsen(graph, substreams(2), 2, rng()).vertices) == 2


def test_small_graphs_stay_as_they_are() -> None:
    made = system(1)
    coarse = coarsen(made.queries, made.substreams, 100, rng())
    assert coarse.into.tolist() == list(range(40))
    with pytest.raises(ValueError, match="at least one vertex"):
        coarsen(made.queries, made.substreams, 0, rng())


@settings(max_examples=30, deadline=None)
@given(systems, st.integers(0, 99))
def test_edges_of_merged_vertices_are_sums(made: System, seed: int) -> None:
    rng = np.random.default_rng(seed)
    into = rng.integers(4, size=len(made.queries))
    into = np.unique(into, return_inverse=True)[1]
    count = int(into.max()) + 1
    rate = made.substreams.rate_bps
    sums = collapsed(overlaps(made.queries.interests, rate), into, count)
    anew = overlaps(made.queries.merged(into, count).interests, rate)
    assert sums == pytest.approx(anew, rel=1e-4, abs=1e-3)


def test_sparse_and_dense_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    made = system(4)
    found = []
    for gain in (0.0, 1e12):  # always sparse, always dense
        monkeypatch.setattr("thalweg.placement.cosmos.overlaps._DENSE_GAIN", gain)
        found.append(overlaps(made.queries.interests, made.substreams.rate_bps))
    assert found[0] == pytest.approx(found[1], rel=1e-5, abs=1e-4)
