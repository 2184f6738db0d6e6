"""The normal form says what the plan says, and says it in one way."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sharing.drawing import plan_of, streams, wrapped_queries

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import difference
from thalweg.engine.reference import evaluate
from thalweg.sharing.core import Core, NormalQuery, NotNormal
from thalweg.sharing.normal import normalise
from thalweg.sharing.plans import query_plan


def normal(text: str) -> NormalQuery:
    found = normalise(plan_of(text))
    assert isinstance(found, NormalQuery), found
    return found


def core(text: str) -> Core:
    return normal(text).core


@settings(max_examples=150)
@given(wrapped_queries(), streams(most=5))
def test_the_normal_form_has_the_results_of_the_plan(
    text: str, inputs: dict[str, list[Arrival]]
) -> None:
    plan = plan_of(text)
    query = normalise(plan)
    if isinstance(query, NotNormal):
        assert "joins the result" in query.reason
        return
    rebuilt = query_plan(query)
    assert [f.name for f in rebuilt.schema] == [f.name for f in plan.schema]
    assert not difference(evaluate(plan, inputs), evaluate(rebuilt, inputs))


@settings(max_examples=60)
@given(wrapped_queries())
@example(  # the class's first member comes before the other operand, the member before did not
    "SELECT r2.v + r2.k AS c0 FROM B [Now] r0, A [Now] r1, A [Now] r2 "
    "WHERE r1.k = r0.k AND r1.k = r2.v"
)
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    query = normalise(plan_of(text))
    if isinstance(query, NormalQuery):
        assert normalise(query_plan(query)) == query


SAME = [
    ("SELECT k FROM A [Now] WHERE v > 3", "SELECT a.k AS other FROM A [Now] a WHERE 3 < a.v"),
    ("SELECT k FROM A WHERE v > 3", "SELECT k FROM A [Unbounded] WHERE v >= 4"),
    ("SELECT k FROM A WHERE NOT (v < 1 OR v > 3)", "SELECT k FROM A WHERE v BETWEEN 1 AND 3"),
    ("SELECT k FROM A WHERE v IN (3)", "SELECT k FROM A WHERE v = 3 AND v <= 7 AND TRUE"),
    ("SELECT k FROM A WHERE v IN (3, 1, 3)", "SELECT k FROM A WHERE v = 1 OR v = 3"),
    ("SELECT k FROM A WHERE v = 1 + 2 AND d > 1", "SELECT k FROM A WHERE d >= 1.01 AND v = 3"),
    ("SELECT k FROM B WHERE p", "SELECT k FROM B WHERE p = TRUE"),
    ("SELECT k FROM B WHERE NOT p", "SELECT k FROM B WHERE FALSE = p"),
    (
        "SELECT a.k, w FROM A [Range 3] a, B [Now] b WHERE a.k = b.k AND b.k > 2",
        "SELECT b.k, b.w FROM B [Now] b, A [Range 3] a WHERE a.k > 2 AND b.k = a.k",
    ),
    (
        "SELECT u FROM Near WHERE k = 3",
        "SELECT v + 1 AS z FROM A [Range 3] WHERE k = 3 AND v > 0",
    ),
    (
        "SELECT x.k FROM A [Range 1] x, A [Range 2] y WHERE x.k = y.v",
        "SELECT p.k FROM A [Range 2] q, A [Range 1] p WHERE q.v = p.k",
    ),
    (
        "SELECT x.k FROM A x, A y, A z WHERE x.k = y.k AND y.k = z.k",
        "SELECT z.k FROM A x, A y, A z WHERE z.k = y.k AND x.k = z.k",
    ),
    (
        "SELECT k, v, COUNT(*) AS n, SUM(x) AS s FROM A GROUP BY k, v HAVING k > 3",
        "SELECT k, v, COUNT(*) AS n, SUM(x) AS s FROM A WHERE k > 3 GROUP BY v, k",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_different_texts_of_one_query_have_one_normal_form(one: str, other: str) -> None:
    first, second = normal(one), normal(other)
    assert (first.core, first.above, first.kind) == (second.core, second.above, second.kind)
    assert hash(first.core) == hash(second.core)


DIFFERENT = [
    ("SELECT k FROM A WHERE v > 3", "SELECT k FROM A WHERE v > 4"),
    ("SELECT k FROM A WHERE v > 3", "SELECT v FROM A WHERE v > 3"),
    ("SELECT k FROM A [Now]", "SELECT k FROM A [Range 1]"),
    ("SELECT k, v FROM A", "SELECT v, k FROM A"),
    ("SELECT k FROM A WHERE x > 1e0", "SELECT k FROM A WHERE x >= 1e0"),
    ("SELECT k FROM A WHERE t LIKE 'a%'", "SELECT k FROM A WHERE t LIKE 'b%'"),
    ("SELECT k FROM A", "SELECT DISTINCT k FROM A"),
    ("SELECT k FROM A [Now]", "ISTREAM (SELECT k FROM A [Now])"),
    (
        "SELECT a.k FROM A [Now] a, B [Range 1] b WHERE a.k = b.k",
        "SELECT a.k FROM A [Range 1] a, B [Now] b WHERE a.k = b.k",
    ),
    ("SELECT k, SUM(v) AS s FROM A GROUP BY k", "SELECT k, SUM(DISTINCT v) AS s FROM A GROUP BY k"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_queries_have_different_normal_forms(one: str, other: str) -> None:
    first, second = normal(one), normal(other)
    assert (first.core, first.above, first.kind) != (second.core, second.above, second.kind)


def test_queries_that_differ_by_constants_windows_and_outputs_have_one_signature() -> None:
    one = core("SELECT a.k, t FROM A [Range 3] a, B [Now] b WHERE a.k = b.k AND v > 3 AND w = 1")
    other = core("SELECT w FROM B [Range 2] b, A [Now] a WHERE x < 2e0 AND b.k = a.k")
    assert one.signature == other.signature
    assert one != other


def test_windows_that_slide_differently_have_another_signature() -> None:
    slides = [core(f"SELECT k FROM A [Range {w}]") for w in ("6", "6 Slide 2", "8 Slide 2")]
    assert slides[0].signature != slides[1].signature == slides[2].signature


def test_a_core_for_groups_computes_keys_and_arguments_only() -> None:
    query = normal("SELECT k, SUM(v) AS s FROM A [Range 3] WHERE d > 1 GROUP BY k")
    assert [e.index for e in query.core.outputs] == [0, 1]  # type: ignore[union-attr]


REASONS = [
    ("SELECT k FROM A [Rows 3]", "A has a window of rows"),
    ("SELECT a.k FROM A [Now] a LEFT JOIN B [Now] b ON a.k = b.k", "LEFT JOIN"),
    ("SELECT k FROM A [Now] UNION SELECT k FROM B [Now]", "UNION combines"),
    ("SELECT k FROM A [Now] WHERE k IN (SELECT k FROM B [Now])", "EXISTS and IN (sub-query)"),
    ("RSTREAM (SELECT k FROM A [Now])", "RSTREAM repeats"),
    ("SELECT k FROM (ISTREAM (SELECT k FROM A [Now])) [Range 3]", "window stands on a sub-query"),
    (
        "SELECT b.k FROM (SELECT k, COUNT(*) AS n FROM A [Now] GROUP BY k) g, B [Now] b",
        "joins the result of a GROUP BY or DISTINCT",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REASONS)
def test_what_has_no_normal_form_says_why(text: str, reason: str) -> None:
    found = normalise(plan_of(text))
    assert isinstance(found, NotNormal)
    assert reason in found.reason


@given(st.permutations(["v > 0", "v < 9", "k = 1", "t LIKE 'a%'", "v <> 4", "x < 1e0", "k < v"]))
def test_the_order_of_conditions_does_not_matter(parts: list[str]) -> None:
    expected = core("SELECT k FROM A WHERE v > 0 AND v < 9 AND k = 1 AND t LIKE 'a%' AND "
                    "v <> 4 AND x < 1e0 AND k < v")  # fmt: skip
    assert core(f"SELECT k FROM A WHERE {' AND '.join(parts)}") == expected
