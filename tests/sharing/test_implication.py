"""What follows from what, against all rows of a small domain."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sharing.drawing import CONDITIONS, Drawer
from tests.sharing.rules.test_rules import ROWS
from tests.sharing.rules.written import condition
from tests.sharing.test_normal import core

from thalweg.engine.reference.expressions import holds
from thalweg.sharing.facts import facts_of
from thalweg.sharing.implication import follows, gap
from thalweg.sharing.naming import named_columns

EVERY_ROW = [*ROWS, *product((1, 2), (0, 1, 2), (1.0,), ("b", "ab"), ROWS[0][4:])]


@st.composite
def conditions(draw: st.DrawFn) -> str:
    drawer = Drawer(draw, ("A",))
    templates = [t for t in CONDITIONS["A"] if "NULL" not in t]
    return drawer.filled(drawer.pick(templates), "A")


def test_what_follows_is_true_wherever_the_rest_is() -> None:
    followed = []

    @settings(max_examples=120)
    @given(st.lists(conditions(), min_size=1, max_size=3), conditions())
    def check(known: list[str], wanted: str) -> None:
        facts = facts_of(core(f"SELECT k FROM A WHERE {' AND '.join(known)}"))
        says_yes = follows(facts, condition(wanted))
        schema = named_columns(core("SELECT k FROM A").streams)
        # A gap looks at several conditions together, and so may see more.
        assert not says_yes or gap(facts, (condition(wanted),), schema) is None
        if not facts.contradiction and gap(facts, (condition(wanted),), schema) is None:
            followed.append(wanted)
            premise = [condition(k) for k in known]
            for row in EVERY_ROW:
                if all(holds(p, row) for p in premise):
                    assert holds(condition(wanted), row)

    check()
    assert len(followed) > 5


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        ("v = k * k", "v <> k * k"),
        ("k <= 2 AND v >= 2", "k < v"),
        ("v IN (1, 5)", "v IN (1, 2, 3)"),
        ("v IN (1, 2)", "k IN (1, 2)"),
        ("v <= k", "v < k"),
        ("v > 2 OR k > 2", "v > 2"),
        ("x < 1e0", "x <> 1e0 AND x < 0e0"),
        ("t > 'a'", "t >= 'b'"),
        ("v <> 1", "v < 1 OR v > 2"),
        ("v IS NULL", "v IS NOT NULL"),
    ],
)
def test_what_does_not_follow(known: str, wanted: str) -> None:
    assert not follows(facts_of(core(f"SELECT k FROM A WHERE {known}")), condition(wanted))


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        ("v = k * k", "k * k >= v"),
        ("k <= 2 AND v >= 2", "k <= v"),
        ("k < 2 AND v >= 2", "v > k"),
        ("v IN (1, 3)", "v IN (1, 2, 3)"),
        ("v < k", "v <> k"),
        ("v = 3 AND k = 3", "v = k"),
        ("v < 3 AND k > 3", "v <> k"),
        ("x < 1e0", "x <> 1e0 AND x < 2e0"),
    ],
)
def test_what_follows(known: str, wanted: str) -> None:
    assert follows(facts_of(core(f"SELECT k FROM A WHERE {known}")), condition(wanted))
