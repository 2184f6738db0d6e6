from tests.sharing.drawing import plan_of
from tests.sharing.rules.written import condition, value

from thalweg.plan.text import plan_text
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.plans import query_plan, range_conditions
from thalweg.sharing.ranges import EVERYTHING, Bound, Range


def test_a_range_becomes_comparisons() -> None:
    v = value("v")
    assert range_conditions(v, Range(Bound(1, True), Bound(5, False))) == (
        condition("v >= 1"),
        condition("v < 5"),
    )
    assert range_conditions(v, Range(Bound(1, True), Bound(1, True))) == (condition("v = 1"),)


def test_a_range_without_bounds_still_keeps_null_out() -> None:
    assert range_conditions(value("v"), EVERYTHING) == (condition("v IS NOT NULL"),)


def test_a_query_is_a_plan_again() -> None:
    text = "ISTREAM (SELECT k AS key, COUNT(*) AS n FROM A [Range 3] WHERE v > 3 GROUP BY k)"
    query = normalise(plan_of(text))
    assert isinstance(query, NormalQuery)
    assert plan_text(query_plan(query)).splitlines() == [
        "ISTREAM",
        "  Project k AS key, count AS n",
        "    Aggregate COUNT(*) by k",
        "      Project k",
        "        Filter v >= 4",
        "          Window [Range 3]",
        "            Stream A",
    ]
