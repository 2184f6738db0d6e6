"""Plans from measured rates: the join with the smallest expected output comes first."""

import pytest

from thalweg.overlay.p2p.planning import Rate, explain, plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.source import Measured

LEAVES = (Leaf("X", 10), Leaf("Y", 10), Leaf("Z", 10))
CHAIN = [Between(0, 0, "=", 1, 0), Between(1, 1, "=", 2, 1)]


def _first(x, z):
    joins, _ = plan_joins(LEAVES, CHAIN, {"X": Rate(x), "Y": Rate(1.0), "Z": Rate(z)})
    return {i.child for i in joins[0].inputs}


def test_the_slower_neighbour_is_joined_first():
    assert _first(x=100.0, z=1.0) == {1, 2}
    assert _first(x=1.0, z=100.0) == {0, 1}


def test_explain_says_what_the_plan_was_made_for():
    joins, rest = plan_joins(LEAVES, CHAIN, {})
    query = JoinQuery("q", "n1", LEAVES, joins, ((0, 0),), rest)
    assert explain(query)[-1] == "  planned by rates: not known, taken as equal"
    known = JoinQuery("q", "n1", LEAVES, joins, ((0, 0),), rest, rates=(("X", 0.5), ("Y", 2.0)))
    assert explain(known)[-1] == "  planned by rates: measured, tuples an instant: X 0.5, Y 2"


def test_a_rate_is_of_late():
    measured = Measured()
    assert measured.rate == 0.0
    measured.take(5, 100)  # from here on
    for instant in range(110, 1_110, 10):
        measured.take(20, instant)
    assert measured.rate == pytest.approx(2.0)
    for instant in range(1_110, 101_110, 10):
        measured.take(5, instant)
    assert measured.rate == pytest.approx(0.5, rel=0.05)
