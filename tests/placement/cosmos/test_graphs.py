"""Graphs of coordinators: coarse vertices know, through their tags, the queries in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import proxies, system

from thalweg.placement.arrays import NONE
from thalweg.placement.cosmos.graphs import Library, QueryGraph, build
from thalweg.placement.cosmos.system import Settings


def graph_of(seed: int, most: int, *, stay: bool = False) -> tuple[QueryGraph, np.ndarray]:
    made = system(seed, providers=20, queries=150)
    at = proxies(made)
    graph = build(made, at, Settings(most_vertices=most, seed=seed), stay=stay)
    return graph, at


def to_queries(graph: QueryGraph) -> np.ndarray:
    """Of each query, the coarse vertex of the root that it is in."""
    library = Library.of(graph)
    tags, vertex = graph.tags, np.arange(len(graph.tags))
    while tags.graph[0] != NONE:
        tags, parent = library.finer(tags)
        vertex = vertex[parent]
    found = np.full(150, NONE)
    found[tags.vertex] = vertex
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.integers(5, 40))
def test_every_query_is_in_one_coarse_vertex_of_the_root(seed: int, most: int) -> None:
    graph, _ = graph_of(seed, most)
    vertex = to_queries(graph)
    assert (vertex != NONE).all()
    made = system(seed, providers=20, queries=150)
    weight = np.bincount(vertex, made.queries.weight, len(graph.tags))
    assert weight == pytest.approx(graph.coarse.vertices.weight)
    again = made.queries.merged(vertex, len(graph.tags))
    assert abs(again.interests - graph.coarse.vertices.interests).max() < 1e-6


def test_vertices_that_stay_have_a_place_at_every_level() -> None:
    graph, at = graph_of(3, 12, stay=True)
    vertex = to_queries(graph)
    below = {int(p): i for i, child in enumerate(graph.cluster.children) for p in child.providers}
    for v in range(len(graph.tags)):
        assert len({below[int(p)] for p in at[vertex == v]}) == 1


def test_tags_of_a_part_lead_to_that_part_only() -> None:
    graph, at = graph_of(5, 12)
    for part in graph.parts:
        library = Library.of(graph)
        tags = part.tags
        while len(tags) and tags.graph[0] != NONE:
            tags, _ = library.finer(tags)
        assert set(at[tags.vertex].tolist()) <= set(part.cluster.providers.tolist())
