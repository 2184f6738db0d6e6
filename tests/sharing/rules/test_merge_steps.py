"""What stands above a core, by what becomes of whole queries."""

from tests.sharing.drawing import plan_of

from thalweg.sharing.core import Computed, Grouped, Kept, NormalQuery, Step, WithoutRepeats
from thalweg.sharing.normal import normalise


def query(text: str) -> NormalQuery:
    found = normalise(plan_of(text))
    assert isinstance(found, NormalQuery)
    return found


def kinds(text: str) -> list[type[Step]]:
    return [type(step) for step in query(text).above]


GROUPS = "(SELECT k, COUNT(*) AS n, SUM(v) AS s FROM A [Range 2] GROUP BY k)"


def test_neighbouring_projections_and_filters_become_one_of_each() -> None:
    text = f"SELECT m FROM (SELECT n + 1 AS m, s FROM {GROUPS} g WHERE n > 1) h WHERE s < 4"
    assert kinds(text) == [Grouped, Kept, Computed]


def test_having_on_keys_goes_down_to_the_core() -> None:
    found = query("SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING k > 3 AND COUNT(*) > 1")
    assert [str(values) for _, values in found.core.ranges] == ["[4, ∞)"]
    assert [type(s) for s in found.above] == [Grouped, Kept]


def test_having_without_keys_stays_above() -> None:
    found = query("SELECT COUNT(*) AS n FROM A HAVING COUNT(*) > 1")
    assert found.core.ranges == ()
    assert [type(s) for s in found.above] == [Grouped, Kept]


def test_a_second_distinct_does_nothing() -> None:
    assert kinds("SELECT DISTINCT * FROM (SELECT DISTINCT k FROM A) a") == [WithoutRepeats]


def test_a_group_by_over_groups_sees_through_the_projection_between() -> None:
    text = f"SELECT m, COUNT(*) AS n FROM (SELECT n + 1 AS m FROM {GROUPS} g) h GROUP BY m"
    assert kinds(text) == [Grouped, Grouped]
