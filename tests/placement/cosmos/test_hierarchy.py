"""Coordinator trees: clusters of near providers, in bounds, led by their medians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.hierarchy import Cluster, cluster


def plane(count: int, seed: int) -> np.ndarray:
    at = np.random.default_rng(seed).random((count, 2))
    return floats(np.linalg.norm(at[:, None] - at[None], axis=2))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.integers(2, 6), st.integers(0, 99))
def test_every_provider_stands_once_in_clusters_of_k_to_3k_less_1(
    count: int, k: int, seed: int
) -> None:
    root = cluster(plane(count, seed), k)
    assert sorted(root.providers.tolist()) == list(range(count))
    for coordinator in root.coordinators():
        assert len(coordinator.children) <= 3 * k - 1
        assert coordinator is root or len(coordinator.children) >= k
        assert coordinator.centre in [c.centre for c in coordinator.children]


def test_the_centre_is_the_median() -> None:
    latency = plane(60, 3)
    for coordinator in cluster(latency, 4).coordinators():
        centres = [c.centre for c in coordinator.children]
        totals = latency[np.ix_(centres, centres)].sum(axis=1)
        assert centres[int(np.argmin(totals))] == coordinator.centre


def test_clusters_are_of_near_ones() -> None:
    latency = plane(120, 1)
    root = cluster(latency, 4)
    lowest = [c for c in root.coordinators() if c.height == 1]
    within = [latency[np.ix_(c.providers, c.providers)].mean() for c in lowest]
    assert np.mean(within) < 0.4 * latency.mean()


def test_a_tree_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Cluster(0, (Cluster(1), Cluster(1)))
    with pytest.raises(ValueError, match="not of one level"):
        Cluster(0, (Cluster(0), Cluster(1, (Cluster(1), Cluster(2)))))
    with pytest.raises(ValueError, match="k is 2 or more"):
        cluster(plane(4, 0), 1)
    with pytest.raises(ValueError, match="no providers"):
        cluster(floats(np.zeros((0, 0))))
