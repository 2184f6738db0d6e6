from __future__ import annotations

from tests.sharing.test_benefit import COSTS, STATISTICS, near
from tests.sharing.test_estimate import core

from thalweg.sharing.grouping import grouped


def members(*texts: str) -> list[tuple[int, ...]]:
    return [g.members for g in grouped([core(t) for t in texts], STATISTICS, COSTS)]


def test_overlapping_queries_are_one_group() -> None:
    assert members(near("v <= 50"), near("v <= 20"), near("v <= 40")) == [(0, 1, 2)]


def test_a_merge_that_does_not_pay_is_not_made() -> None:
    assert members(near("v <= 1"), near("v >= 99"), near("v <= 2")) == [(0, 2), (1,)]


def test_queries_of_different_joins_are_never_merged() -> None:
    join = "SELECT S.k FROM S [Now], U [Now] WHERE {}"
    assert members(join.format("S.k = U.k"), join.format("S.v = U.w")) == [(0,), (1,)]


def test_a_groups_representative_covers_its_members() -> None:
    cores = [core(near(t)) for t in ("v <= 50", "v BETWEEN 10 AND 60", "v >= 99")]
    for group in grouped(cores, STATISTICS, COSTS):
        assert all(group.representative.covers(cores[m]) for m in group.members)
