"""One bound for all levels: who keeps to a cluster's limit finds room below."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.hierarchy import Cluster
from thalweg.placement.cosmos.limits import Limits
from thalweg.placement.cosmos.model import Balance

LEAVES = tuple(Cluster(3 * i, tuple(Cluster(3 * i + j) for j in range(3))) for i in range(2))
ROOT = Cluster(0, LEAVES)


def test_a_cluster_may_carry_what_its_providers_may_less_one_vertex_each() -> None:
    limits = Limits(floats(np.full(6, 11.0)), Balance(0.1), (0.1, 0.3))
    assert limits.of_children(LEAVES[0]).tolist() == [11, 11, 11]
    assert limits.of_children(ROOT).tolist() == pytest.approx([32.7, 32.7])
    assert limits.of(ROOT) == pytest.approx(2 * (32.7 - 0.3))


def test_heavy_vertices_take_no_more_than_half_of_the_slack() -> None:
    limits = Limits(floats(np.full(6, 11.0)), Balance(0.1), (5.0, 9.0))
    assert limits.of_children(ROOT).tolist() == pytest.approx([3 * 10.5] * 2)


def test_the_limits_of_two_levels_do_not_compound() -> None:
    limits = Limits(floats(np.full(6, 11.0)), Balance(0.1), (0.0, 0.0))
    assert limits.of(ROOT) == pytest.approx(66.0)
