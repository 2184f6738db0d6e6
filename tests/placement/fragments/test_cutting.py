"""Joins go with their faster side."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.placement.fragments.cutting import Leaf, Node, cut

TREES = st.recursive(st.floats(1, 100), lambda t: st.tuples(t, t, st.floats(0.1, 1)), max_leaves=6)


def tree_of(drawn, numbers):
    if isinstance(drawn, tuple):
        left, right = (tree_of(d, numbers) for d in drawn[:2])
        return Node(left, right, drawn[2])
    return Leaf(next(numbers), drawn)


def test_the_plan_of_figure_6_2():
    """QF₂ flows into QF₁, and QF₁ into QF₄ (as the rates here have it)."""
    tree = Node(Node(Leaf(1, 10), Leaf(2, 5), 0.5), Node(Leaf(3, 4), Leaf(4, 20), 0.5), 0.5)
    assert [p.fragment for p in cut(tree)] == [1, 4, 4]


@given(TREES)
def test_every_join_is_in_one_fragment_of_its_own_leaves(drawn):
    numbers = iter(range(100))
    tree = tree_of(drawn, numbers)
    placed = cut(tree)
    joins = next(numbers) - 1
    assert len(placed) == joins
    for p in placed:
        assert p.fragment in p.leaves
