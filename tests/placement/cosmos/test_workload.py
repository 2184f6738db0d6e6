"""The synthetic workload is that of COSMOS 3.4."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.placement.cosmos.workload import Workload, draw

SMALL = Workload(queries=400, substreams=500, sources=7, providers=16, groups=4, wanted=(20, 40))


def test_a_query_wants_as_many_different_substreams_as_drawn() -> None:
    drawn = draw(SMALL, 1)
    lengths = np.diff(drawn.queries.interests.indptr)
    assert lengths.min() >= 20
    assert lengths.max() <= 40
    assert (drawn.queries.interests.data == 1).all()
    assert drawn.queries.interests.has_canonical_format


def test_a_query_may_want_everything() -> None:
    drawn = draw(Workload(queries=3, substreams=50, wanted=(50, 50)), 1)
    assert (drawn.queries.interests.toarray() == 1).all()


def test_queries_of_a_group_have_more_in_common() -> None:
    drawn = draw(SMALL, 2)
    rows = drawn.queries.interests
    common = (rows @ rows.T).toarray()
    np.fill_diagonal(common, 0)
    same = drawn.group[:, None] == drawn.group
    assert common[same].mean() > 2 * common[~same].mean()


def test_hot_spots_follow_zipf() -> None:
    """Of one group, the hottest substream is drawn as often as a direct simulation draws it."""
    workload = Workload(queries=2000, substreams=200, groups=1, wanted=(10, 10), providers=4)
    drawn = draw(workload, 3)
    seen = np.sort(np.bincount(drawn.queries.interests.indices, minlength=200) / 2000)[::-1]
    chance = np.arange(1, 201) ** -0.8
    chance /= chance.sum()
    rng = np.random.default_rng(0)
    direct = np.zeros(200)
    for _ in range(2000):
        direct[rng.choice(200, 10, replace=False, p=chance)] += 1 / 2000
    assert seen[:5] == pytest.approx(direct[:5], abs=0.05)


def test_loads_and_results_are_in_proportion_to_the_input() -> None:
    drawn = draw(SMALL, 1)
    read = drawn.queries.interests @ drawn.substreams.rate_bps
    assert drawn.queries.weight == pytest.approx(read)
    assert drawn.queries.results.sum(axis=1) == pytest.approx(0.01 * read)


def test_the_same_seed_gives_the_same_queries_and_later_ones_differ() -> None:
    one, again, later = draw(SMALL, 5), draw(SMALL, 5), draw(SMALL, 5, first=400)
    assert (one.queries.interests != again.queries.interests).nnz == 0
    assert (one.queries.interests != later.queries.interests).nnz > 0
    assert (one.substreams.rate_bps == later.substreams.rate_bps).all()


def test_impossible_workloads_are_refused() -> None:
    with pytest.raises(ValueError, match="can't want 5 to 20 of 10"):
        Workload(substreams=10, wanted=(5, 20))
