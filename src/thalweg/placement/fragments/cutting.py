"""Which fragment each binary operator of a query joins (COSMOS 6.2.1, steps 2 to 4).

A query has one fragment for each stream. Unary operators go with the fragment below them; a binary
one goes with the child whose estimated result is faster, as then the slower one travels.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stream with its filters: the fragment's number, and the rate after the filters."""

    fragment: int
    rate: float


@dataclass(frozen=True, slots=True)
class Node:
    """A join: results are the selectivity times the tuples that come in."""

    left: Leaf | Node
    right: Leaf | Node
    selectivity: float = 1.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A binary operator in its fragment."""

    fragment: int
    leaves: tuple[int, ...]  # whose tuples pass it
    input_rate: float
    selectivity: float


def cut(tree: Leaf | Node) -> list[Placed]:
    """The operators from the bottom up; on a tie the left side has them."""
    found: list[Placed] = []
    _cut(tree, found)
    return found


def _cut(tree: Leaf | Node, found: list[Placed]) -> tuple[int, float, tuple[int, ...]]:
    if isinstance(tree, Leaf):
        return tree.fragment, tree.rate, (tree.fragment,)
    left, left_rate, left_leaves = _cut(tree.left, found)
    right, right_rate, right_leaves = _cut(tree.right, found)
    fragment = left if left_rate >= right_rate else right
    leaves = left_leaves + right_leaves
    rate = left_rate + right_rate
    found.append(Placed(fragment, leaves, rate, tree.selectivity))
    return fragment, rate * tree.selectivity, leaves
