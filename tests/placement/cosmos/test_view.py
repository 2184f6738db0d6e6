"""The cut as a coordinator sees it, without a list of edges."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.cosmos.systems import system

from thalweg.placement.arrays import ints
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.model import Balance
from thalweg.placement.cosmos.view import global_view


def test_for_one_who_knows_every_provider_it_is_the_weighted_edge_cut() -> None:
    made = system(1)
    mapping = ints(np.random.default_rng(1).integers(9, size=40))
    seen = global_view(made, Balance())
    exact = weighted_edge_cut(made.network, made.substreams, made.queries, mapping).total
    assert seen.cut(made.queries, made.substreams, mapping) == pytest.approx(exact, rel=1e-5)


def test_it_is_that_of_a_task_with_all_edges() -> None:
    made = system(2)
    seen = global_view(made, Balance())
    task = seen.task(made.queries, made.substreams)
    mapping = ints(np.random.default_rng(2).integers(9, size=40))
    assert seen.cut(made.queries, made.substreams, mapping) == pytest.approx(
        task.cut(mapping), rel=1e-5
    )


def test_chance_is_the_mean_over_random_mappings() -> None:
    made = system(3, uneven=True)
    seen = global_view(made, Balance())
    rng = np.random.default_rng(3)
    share = seen.limits / seen.limits.sum()
    drawn = [
        seen.cut(made.queries, made.substreams, ints(rng.choice(9, size=40, p=share)))
        for _ in range(400)
    ]
    assert seen.chance(made.queries, made.substreams) == pytest.approx(np.mean(drawn), rel=0.02)
