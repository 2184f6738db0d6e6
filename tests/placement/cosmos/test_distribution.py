"""The hierarchical distribution: everybody placed, within one bound, and well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.cosmos.systems import proxies, system

from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.centralised import centralised, greedy
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.model import Network
from thalweg.placement.cosmos.system import Settings, System


def cut(made: System, mapping: np.ndarray) -> float:
    return weighted_edge_cut(made.network, made.substreams, made.queries, mapping).total


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 999), st.integers(3, 30), st.integers(5, 60), st.booleans())
def test_the_bound_holds_for_the_whole_system(
    seed: int, providers: int, most: int, uneven: bool
) -> None:
    """With queries of at most a fiftieth of a share it is feasible on every level."""
    made = system(seed, providers=providers, queries=60 * providers, uneven=uneven)
    chosen = Settings(most_vertices=most)
    mapping = distribute(made, proxies(made), chosen)
    assert mapping.min() >= 0
    load = np.bincount(mapping, made.queries.weight, providers)
    heaviest = made.queries.weight.max()
    limits = made.limits(chosen.balance)
    if heaviest <= 0.04 * (limits / 1.1).min():
        assert (load <= limits * (1 + 1e-6)).all()
    assert (load <= limits + heaviest * (1 + 1e-6)).all()


def test_few_queries_are_over_the_bound_by_one_query_at_most() -> None:
    for seed in range(20):
        made = system(seed, providers=12, queries=15)
        mapping = distribute(made, proxies(made), Settings())
        load = np.bincount(mapping, made.queries.weight, 12)
        assert (load <= made.limits(Settings().balance) + made.queries.weight.max()).all()


def test_the_hierarchy_comes_near_to_one_node_that_knows_everything() -> None:
    closed = []
    for seed in range(3):
        made = system(seed, providers=24, queries=500, substreams=120, k=3)
        proxy, chosen = proxies(made), Settings(most_vertices=60)
        best = min(cut(made, centralised(made, proxy, chosen)), cut(made, greedy(made, chosen)))
        ours = cut(made, distribute(made, proxy, chosen))
        closed.append((cut(made, proxy) - ours) / (cut(made, proxy) - best))
    assert np.mean(closed) > 0.85


def test_the_same_seed_gives_the_same_mapping() -> None:
    made = system(7, providers=20, queries=300)
    one, other = (distribute(made, proxies(made), Settings(seed=3)) for _ in range(2))
    assert (one == other).all()


def test_a_provider_without_capability_gets_nothing() -> None:
    made = system(7, providers=20, queries=300)
    capability = np.ones(20)
    capability[[3, 11]] = 0
    network = Network(made.network.latency_ms, made.network.source_ms, floats(capability))
    able = System(network, made.root, made.substreams, made.queries)
    mapping = distribute(able, proxies(made), Settings())
    assert not np.isin(mapping, [3, 11]).any()


def test_no_queries_and_single_providers_are_fine() -> None:
    empty = system(1, queries=0)
    assert distribute(empty, proxies(empty), Settings()).tolist() == []
    alone = system(1, providers=1, queries=5)
    assert distribute(alone, proxies(alone), Settings()).tolist() == [0] * 5


def test_a_tree_over_other_providers_is_refused() -> None:
    made = system(1)
    with pytest.raises(ValueError, match="every provider just once"):
        System(made.network, Cluster(0), made.substreams, made.queries)


def test_steps_can_be_watched() -> None:
    made = system(2, providers=20, queries=200)
    steps: list[tuple[int, str]] = []

    def watch(cluster: Cluster, step: str, work):  # type: ignore[no-untyped-def]
        steps.append((cluster.height, step))
        return work()

    distribute(made, proxies(made), Settings(most_vertices=30), run=watch)
    assert {s for _, s in steps} == {"coarsen", "map", "settle", "exchange"}
    assert all(height == 1 for height, step in steps if step == "settle")
