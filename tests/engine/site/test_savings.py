import pytest
from tests.sharing.test_estimate import SPANS, core

from thalweg.engine.site.savings import SAMPLE, Cost, Measurement, estimate, measure
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.representative import representative

STATISTICS = Statistics({"S": 1000}, SPANS)


def test_measured_is_the_group_against_as_many_queries_as_it_answers() -> None:
    alone = [Cost(2.0, 100), Cost(4.0, 200)]
    assert measure(Cost(3.0, 100), alone, 10) == Measurement(
        group_s=0.03, alone_s=0.02, queries=2, saved=pytest.approx(1 - 0.03 / 0.2)
    )


def test_a_group_that_costs_more_than_its_members_is_shown_as_a_loss() -> None:
    found = measure(Cost(9.0, 100), [Cost(2.0, 100)], 2)
    assert found is not None
    assert found.saved < 0


def test_nothing_is_measured_where_nobody_ran_by_itself() -> None:
    assert measure(Cost(3.0, 100), [], 10) is None
    assert measure(Cost(3.0, 100), [Cost()], 10) is None
    assert measure(Cost(), [Cost(2.0, 100)], 10) is None


def test_estimated_are_rows_and_tuples_with_and_without_the_group() -> None:
    members = [core(f"SELECT k FROM S [Now] WHERE v <= {v}") for v in (50, 20)]
    found = estimate(representative(members).to_core(), members, STATISTICS)
    assert found is not None
    assert found.alone_rows_per_s == pytest.approx(700)
    assert found.shared_rows_per_s == pytest.approx(500)
    assert (found.alone_tuples_per_s, found.shared_tuples_per_s) == (2000, 1000)


def test_of_very_many_members_some_stand_for_all() -> None:
    one = core("SELECT k FROM S [Now] WHERE v <= 50")
    found = estimate(one, [one] * (3 * SAMPLE), STATISTICS)
    assert found is not None
    assert found.alone_rows_per_s == pytest.approx(500 * 3 * SAMPLE)


def test_nothing_is_estimated_before_tuples_were_seen() -> None:
    one = core("SELECT k FROM S [Now] WHERE v <= 50")
    assert estimate(one, [one], Statistics({})) is None
