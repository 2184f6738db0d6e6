"""The representative contains its members, and is no larger than it must be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.sharing.drawing import plan_of, query_sets, streams
from tests.sharing.interval_rows import interval_rows, netted, valid

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import difference
from thalweg.engine.reference import evaluate
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Core, NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.representative import representative


def core(text: str) -> Core:
    query = normalise(plan_of(text))
    assert isinstance(query, NormalQuery), query
    return query.core


MEMBERS = [
    "SELECT a.t FROM A [Range 3] a, B [Now] b WHERE a.k = b.k AND v > 3 AND w = 1 AND x < 0e0",
    "SELECT p FROM A [Range 1] a, B [Range 2] b WHERE a.k = b.k AND v > 1 AND w = 5 AND v <> 7",
]


def test_windows_are_the_loosest_ranges_the_hull_and_columns_the_union() -> None:
    rep = representative(map(core, MEMBERS))
    assert rep.windows == (TimeWindow(3), TimeWindow(2))
    assert [str(values) for _, values in rep.ranges] == ["[2, ∞)", "[1, 5]"]
    assert rep.residuals == ()
    #               v, x, t of A; w, p of B
    assert rep.attributes == (1, 2, 3, 6, 7)


def test_an_expression_that_some_member_leaves_free_is_free() -> None:
    rep = representative([core("SELECT k FROM A WHERE v > 3"), core("SELECT k FROM A WHERE k = 1")])
    assert rep.ranges == ()


def test_ranges_that_together_hold_everything_are_no_range() -> None:
    rep = representative([core("SELECT k FROM A WHERE v > 3"), core("SELECT k FROM A WHERE v < 5")])
    assert rep.ranges == ()


def test_a_residual_that_all_have_is_the_representatives_own() -> None:
    one = core("SELECT k FROM A WHERE t LIKE 'a%' AND v <> 1")
    other = core("SELECT k FROM A WHERE t LIKE 'a%' AND v <> 2")
    assert [r.constants for r in representative([one, other]).residuals] == [("a%",)]


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("SELECT k FROM A [Range 3] WHERE v > 3 AND v < 9", True),
        ("SELECT k FROM A [Range 3] WHERE v > 2", False),
        ("SELECT k FROM A [Range 3]", False),
        ("SELECT k FROM A [Range 4] WHERE v > 3", False),
        ("SELECT k FROM A WHERE v > 3", False),
        ("SELECT t FROM A [Now] WHERE v > 3", False),
        ("SELECT v, v + k AS s FROM A [Now] WHERE v = 5 AND k = v", False),
        ("SELECT v, v + k AS s FROM A [Now] WHERE v = 5 AND k <> 1", True),
        ("SELECT k FROM A [Now] WHERE v = 5 AND x < 1e0", False),
        ("SELECT k FROM B [Now] WHERE k > 3", False),
    ],
)
def test_a_core_is_covered_if_no_window_range_or_column_reaches_beyond(
    text: str, covered: bool
) -> None:
    rep = representative([core("SELECT k FROM A [Range 3] WHERE v > 3")])
    assert rep.covers(core(text)) is covered


def test_queries_of_different_joins_have_no_representative() -> None:
    one = core("SELECT a.k FROM A a, B b WHERE a.k = b.k")
    other = core("SELECT a.k FROM A a, B b WHERE a.v = b.w")
    with pytest.raises(ValueError, match="different signatures"):
        representative([one, other])


@settings(max_examples=60)
@given(query_sets(), streams())
def test_its_plan_gives_its_interval_rows(
    texts: list[str], inputs: dict[str, list[Arrival]]
) -> None:
    first, *others = map(core, texts)
    rep = representative([first, *(o for o in others if o.signature == first.signature)])
    intervals = [
        (*valid(rep.windows, row.timestamps), tuple(row.kept[i] for i in rep.attributes))
        for row in interval_rows(rep, inputs)
    ]
    assert not difference(evaluate(rep.to_plan(), inputs), netted(intervals))


@settings(max_examples=60)
@given(query_sets())
def test_the_order_of_members_does_not_matter_and_a_covered_one_changes_nothing(
    texts: list[str],
) -> None:
    first, *others = map(core, texts)
    members = [first, *(o for o in others if o.signature == first.signature)]
    rep = representative(members)
    if not any(values.is_empty for m in members for _, values in m.ranges):
        assert representative(members[::-1]) == rep
    for member in members:
        assert rep.covers(member)
        assert rep.merged(member) == rep
