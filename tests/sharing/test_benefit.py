from __future__ import annotations

import pytest
from tests.sharing.test_estimate import SPANS, core

from thalweg.sharing.benefit import Costs, benefit, gain
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.representative import representative

STATISTICS = Statistics({"S": 1000, "U": 10}, SPANS)
COSTS = Costs(tuple_s=1e-6, row_s=2e-6, match_s=1e-6, delivery_s=1e-6)


def near(text: str) -> str:
    return f"SELECT k FROM S [Now] WHERE {text}"


def test_rows_are_saved_as_cosmos_counts_them() -> None:
    members = [core(near("v <= 50")), core(near("v <= 20"))]
    found = benefit(members, STATISTICS, COSTS)
    assert found.alone_rows_per_s == pytest.approx(500 + 200)
    assert found.shared_rows_per_s == pytest.approx(500)
    assert found.saved_rows_per_s == pytest.approx(200)


def test_cpu_is_counted_by_tuples_rows_matches_and_deliveries() -> None:
    found = benefit([core(near("v <= 50")), core(near("v <= 20"))], STATISTICS, COSTS)
    assert found.alone_cpu == pytest.approx((2 * 1000 + 2 * 700 + 700) * 1e-6)
    assert found.shared_cpu == pytest.approx((1000 + 3 * 500 + 700) * 1e-6)
    assert found.pays


def test_a_hull_far_wider_than_its_members_does_not_pay() -> None:
    found = benefit([core(near("v <= 1")), core(near("v >= 99"))], STATISTICS, COSTS)
    assert found.saved_cpu < 0
    assert not found.pays


def test_many_equal_queries_cost_about_as_much_as_one() -> None:
    one, many = (
        benefit([core(near("v <= 10"))] * n, STATISTICS, Costs(1e-6, 2e-6, 1e-6, 0.0))
        for n in (1, 100)
    )
    assert many.shared_cpu == pytest.approx(one.shared_cpu)
    assert many.alone_cpu == pytest.approx(100 * one.alone_cpu)


def test_what_a_newcomer_gains_is_what_the_whole_group_gains_by_it() -> None:
    members = [core(near("v <= 50")), core(near("v BETWEEN 30 AND 60"))]
    together = benefit(members, STATISTICS, COSTS).saved_cpu
    first_alone = benefit(members[:1], STATISTICS, COSTS).saved_cpu
    newcomer = gain(representative(members[:1]), members[1], STATISTICS, COSTS)
    assert newcomer == pytest.approx(together - first_alone)
