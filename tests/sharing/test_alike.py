"""Normal forms of plans that differ in constants are those that `normalise` gives."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import examples

from thalweg.cql import compile_script
from thalweg.plan.nodes import Node
from thalweg.sharing.alike import Alike
from thalweg.sharing.core import NormalQuery, NotNormal
from thalweg.sharing.interning import Pool
from thalweg.sharing.normal import normalise

STREAMS = """
CREATE STREAM S (a INT, l BIGINT, v DOUBLE, m DECIMAL(10, 2), w TEXT, d DATE) TIMESTAMP BY ts;
CREATE STREAM R (a INT, l BIGINT, v DOUBLE, m DECIMAL(10, 2), w TEXT, d DATE) TIMESTAMP BY ts;
"""
CATALOG = compile_script(STREAMS).catalog
SHAPES = (
    "SELECT a, w FROM S [Range 5] WHERE {p}",
    "ISTREAM (SELECT * FROM S [Now] WHERE {p} AND {p})",
    "SELECT S.a FROM S [Range 5], R [Now] WHERE S.a = R.a AND {s} AND {r}",
    "SELECT R.v + S.v FROM S [Range 5], R [Now] WHERE S.a = R.a AND {s} AND {r} AND S.v = R.v + 1",
    "SELECT S.a FROM S [Range 5], S [Now] U WHERE S.a = U.l AND {s} AND U.v > {n}",
    "SELECT DISTINCT a FROM S [Range 5] WHERE {p} AND {p}",
    "SELECT a, COUNT(*) AS n FROM S [Range 5] WHERE {p} GROUP BY a HAVING a > {n} AND COUNT(*) > 1",
    "SELECT a FROM (SELECT a, v FROM S [Range 5] WHERE {p}) WHERE a > {n}",
    "RSTREAM (SELECT a FROM S [Range 5] WHERE {p})",
    "SELECT a FROM S [Rows 5] WHERE {p}",
)
CONDITIONS = (
    *("{c} > {n}", "{c} = {n}", "{c} <= {n}", "{n} < {c}", "{c} BETWEEN {n} AND {n}"),
    *("{c} <> {n}", "{c} IN ({n}, {n})", "NOT {c} < {n}", "{c} > {n} OR {c} < {n}", "{c} = {t}a"),
    *("{t}w = 'x{n}'", "{t}w < 'x{n}'", "{t}w LIKE 'x{n}'", "{t}d > DATE '2024-01-0{n}'"),
    *("{c} + {n} > {n}", "{n} < {n}", "{c} > 1 AND {c} > {n}", "{c} * 2 = {n}", "{c} IS NOT NULL"),
)


@st.composite
def families(draw: st.DrawFn) -> list[Node]:
    """Plans of one text with other constants, as they come from the compiler."""
    text = draw(st.sampled_from(SHAPES))
    for hole, table in (("{p}", ""), ("{s}", "S."), ("{r}", "R.")):
        while hole in text:
            column = table + draw(st.sampled_from(("a", "l", "v", "m")))
            condition = draw(st.sampled_from(CONDITIONS))
            condition = condition.replace("{c}", column).replace("{t}", table)
            text = text.replace(hole, condition, 1)
    count = text.count("{n}")
    queries = []
    for number in range(6):
        constants = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
        filled = text
        for constant in constants:
            filled = filled.replace("{n}", str(constant), 1)
        queries.append(f"CREATE QUERY k{number} AS {filled}")
    return [q.plan for q in compile_script(";".join(queries), CATALOG).queries]


def test_forms_are_those_of_each_plan_by_itself() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(100))
    @given(families())
    def drawn(plans: list[Node]) -> None:
        alike = Alike(Pool())
        for plan in plans:
            assert alike.normal(plan) == normalise(plan)
            frame = alike._frame
            by_frame = frame is not None and frame.normal(plan) is not None
            seen["frame" if by_frame else "by itself"] += 1

    drawn()
    assert seen["frame"] > 40, seen
    assert seen["by itself"] > 40, seen


# --- by hand


def plans_of(
    where: str, *constants: object, select: str = "a", source: str = "S [Now]"
) -> list[Node]:
    """Of queries that differ in constants; the first two have taught the compiler."""
    text = f"SELECT {select} FROM {source} WHERE {where}"
    queries = [text.format(*([c] if not isinstance(c, tuple) else c)) for c in constants]
    script = compile_script(";".join([queries[0], queries[0], *queries]), CATALOG)
    return [q.plan for q in script.queries[2:]]


def test_the_second_plan_shows_what_all_have_in_common() -> None:
    alike, plans = Alike(Pool()), plans_of("v > {}", 1, 2, 3)
    alike.normal(plans[0])
    assert alike._frame is None
    forms = [alike.normal(p) for p in plans[1:]]
    assert alike._frame is not None
    assert forms == [normalise(p) for p in plans[1:]]
    first, second = forms
    assert isinstance(first, NormalQuery)
    assert isinstance(second, NormalQuery)
    assert first.core.outputs is second.core.outputs
    assert first.core.ranges[0][0] is second.core.ranges[0][0]


@pytest.mark.parametrize(
    ("where", "constants"),
    [
        ("a > {} AND a > {}", [(1, 2), (2, 1), (3, 3)]),  # of equal parts there is one
        ("a BETWEEN {} AND {}", [(1, 2), (2, 1), (3, 3)]),  # nothing, and a single value
        ("v > {} AND w <> 'x'", [1, 2, 3]),
        ("l > {} AND NOT l < 5", [1, 9, 5]),  # a range that is there already
        ("d > DATE '2024-01-0{}'", [1, 2, 3]),
    ],
)
def test_ranges_meet_as_they_would(where: str, constants: list[object]) -> None:
    alike, plans = Alike(Pool()), plans_of(where, *constants, *constants)
    assert [alike.normal(p) for p in plans] == [normalise(p) for p in plans]
    assert alike._frame is not None


def test_a_column_is_that_of_its_class() -> None:
    alike = Alike(Pool())
    plans = plans_of("S.l = R.l AND S.l > {}", 1, 2, 3, select="S.a", source="S [Range 5], R [Now]")
    forms = [alike.normal(p) for p in plans]
    assert alike._frame is not None
    assert forms == [normalise(p) for p in plans]


@pytest.mark.parametrize(
    ("where", "source"),
    [
        ("S.a = U.a AND S.v > {} AND U.v > 2", "S [Range 5], S [Now] U"),  # ranges order leaves
        ("S.a IN (1, {}) AND S.a = R.a", "S [Range 5], R [Now]"),
    ],
)
def test_what_may_depend_on_constants_is_made_for_each(where: str, source: str) -> None:
    alike = Alike(Pool())
    plans = plans_of(where, 1, 2, 3, select="S.v", source=source)
    assert [alike.normal(p) for p in plans] == [normalise(p) for p in plans]
    assert alike._frame is None


def test_plans_that_are_not_alike_are_taken_too() -> None:
    alike = Alike(Pool())
    plans = [
        *plans_of("v > {}", 1, 2),
        *plans_of("v < {}", 1, 2),
        *plans_of("v > {}", 3, source="R"),
    ]
    assert [alike.normal(p) for p in plans] == [normalise(p) for p in plans]


def test_a_plan_without_normal_form_has_none() -> None:
    alike = Alike(Pool())
    plans = plans_of("v > {}", 1, 2, 3, source="S [Rows 5]")
    assert all(isinstance(alike.normal(p), NotNormal) for p in plans)
