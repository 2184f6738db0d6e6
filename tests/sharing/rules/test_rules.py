"""All rules together: no value changes, NULL included, and each rule has work to do."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from tests.conformance.generators.expressions import Expressions
from tests.conformance.generators.tables import Column
from tests.sharing.drawing import CONDITIONS, VALUES, Drawer
from tests.sharing.rules.written import condition

from thalweg.engine.reference.expressions import evaluate, holds
from thalweg.plan.expr import Expr, walk
from thalweg.sharing.rules import EVERYWHERE, Rule, conditions_of, rewritten

COLUMNS = tuple(
    Column(name, kind)
    for name, kind in zip("kvxtd", ("int", "int", "double", "text", "decimal"), strict=True)
)
ROWS = [
    *product((0, 2, None), (1, 2, 3, None), (0.5, None), ("a", None), VALUES["A"][4]),
    (1, 0, -0.25, "ab", None),
]
TEMPLATES = (
    *CONDITIONS["A"],
    "CAST({}.v AS BIGINT) < {i}",
    "TIMESTAMP '2024-02-29 00:00:00' - CAST('2024-03-01' AS TIMESTAMP) < INTERVAL '1' DAY",
    "TIMESTAMP '2024-02-29 00:00:00' - CAST({}.t AS TIMESTAMP) >= INTERVAL '-1' DAY",
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Conditions of the pool and of the whole language, under AND, OR and NOT."""
    drawer = Drawer(draw, ("A",))
    parts = [
        drawer.filled(drawer.pick(TEMPLATES), "A"),
        Expressions(draw, COLUMNS).condition(2),
    ]
    joined = f" {draw(st.sampled_from(('AND', 'OR')))} ".join(f"({p})" for p in parts)
    return draw(st.sampled_from(("{}", "NOT ({})", "NOT ({}) OR k > 1"))).format(joined)


@settings(max_examples=100)
@given(texts())
def test_rewriting_keeps_every_value(text: str) -> None:
    before = condition(text)
    after = rewritten(before)
    for row in ROWS:
        assert evaluate(after, row) == evaluate(before, row)
    assert rewritten(after) == after


@settings(max_examples=100)
@given(texts())
def test_a_row_that_meets_a_condition_meets_its_parts_and_no_other_does(text: str) -> None:
    before = condition(text)
    after = conditions_of(before)
    for row in ROWS:
        assert all(holds(c, row) for c in after) == holds(before, row)


@st.composite
def pooled(draw: st.DrawFn) -> Expr:
    drawer = Drawer(draw, ("A",))
    return condition(drawer.filled(drawer.pick(TEMPLATES), "A"))


@pytest.mark.parametrize("rule", EVERYWHERE, ids=lambda r: r.__name__)
def test_each_rule_has_something_to_say_in_the_pool_of_conditions(rule: Rule) -> None:
    found = find(pooled(), lambda c: any(rule(part) is not part for part in walk(c)))
    assert any(rule(part) is not part for part in walk(found))
