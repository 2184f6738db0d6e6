"""A tree says what a placement costs and how long it takes, and can't be built wrong."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.sand.trees import line

from thalweg.placement.arrays import floats, ints
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.tree import Tree, TreeError

A, B, C = Source("a", 10, 0), Source("b", 4, 1), Source("c", 6, 2)
AB = Operator("ab", ("a", "b"), 0.5)
ABC = Operator("abc", ("ab", "c"), 0.25)
F_AG, G_F = Operator("f", ("a", "g"), 1), Operator("g", ("f",), 1)
AROUND = (Operator("g", ("h",), 1), Operator("h", ("g",), 1))


def test_an_operator_gives_its_selectivity_times_the_sum_of_its_inputs() -> None:
    tree = make_tree("q", (A, B, C), (AB, ABC), proxy=3)
    rates = dict(zip(tree.names, tree.rate_bps.tolist(), strict=True))
    assert rates == {"a": 10, "b": 4, "ab": 7, "c": 6, "abc": 0.25 * 13, "proxy": 0}


def test_parts_may_come_in_any_order_and_stand_in_post_order() -> None:
    tree = make_tree("q", (C, B, A), (ABC, AB), proxy=3)
    assert tree.names == ("a", "b", "ab", "c", "abc", "proxy")
    assert tree.inputs == ((), (), (0, 1), (), (2, 3), (4,))
    assert (tree.sources, tree.operators, tree.root, tree.proxy) == ((0, 1, 3), (2, 4), 5, 3)


def test_cost_and_delay_include_the_way_to_the_proxy() -> None:
    tree = make_tree("q", (A, B), (AB,), proxy=2)
    distance = line(0, 10, 30).latency_ms
    at_b = np.array([0, 1, 1, 2], np.int32)
    assert tree.cost(at_b, distance) == 10 * 10 + 7 * 20
    assert tree.delays_ms(at_b, distance).tolist() == [30, 20]
    assert tree.delay_ms(at_b, distance) == 30


def test_a_way_that_is_not_there_costs_infinitely_much_even_for_nothing() -> None:
    tree = make_tree("q", (A,), (Operator("none", ("a",), 0.0),), proxy=1)
    distance = np.array([[0.0, np.inf], [1.0, 0.0]])
    assert tree.cost(np.array([0, 0, 1], np.int32), distance) == np.inf


@pytest.mark.parametrize(
    ("sources", "operators", "message"),
    [
        ((A,), (F_AG, G_F), "a cycle: (f → g → f|g → f → g)"),
        ((A,), (Operator("f", ("a",), 1), *AROUND), "a cycle: (g → h → g|h → g → h)"),
        ((Source("a", 1, None),), (Operator("f", ("a",), 1),), "source a stands at no host"),
        ((A, B), (Operator("f", ("a",), 1),), "nobody takes b, f"),
        ((A,), (Operator("f", ("a", "x"), 1),), "f takes 'x', which is no part of it"),
        ((A,), (Operator("f", ("a",), 1), Operator("g", ("a", "f"), 1)), "f and g both take a"),
        ((A, A), (Operator("f", ("a",), 1),), "two parts are named 'a'"),
        ((), (Operator("f", (), 1),), "operator f takes nothing"),
    ],
)
def test_what_is_no_tree_is_refused_by_name(
    sources: tuple[Source, ...], operators: tuple[Operator, ...], message: str
) -> None:
    with pytest.raises(TreeError, match=message):
        make_tree("q", sources, operators, proxy=0)


@pytest.mark.parametrize(
    ("parent", "rate", "pinned", "bound", "message"),
    [
        ([2, 0, -1], [1, 1, 0], [0, 0, 0], 1, "post-order"),
        ([1, 2, -1], [1, 1, 0], [0, -1, -1], 1, "the root"),
        ([1, 2, -1], [1, 1, 0], [-1, -1, 0], 1, "s stands at no host"),
        ([1, 2, -1], [-1, 1, 0], [0, -1, 0], 1, "a rate"),
        ([1, 2, -1], [1, 1, 0], [0, -1, 0], float("nan"), "a bound"),
        ([1, 2], [1, 1, 0], [0, -1, 0], 1, "columns"),
    ],
)
def test_columns_that_make_no_tree_are_refused(
    parent: list[int], rate: list[float], pinned: list[int], bound: float, message: str
) -> None:
    with pytest.raises(TreeError, match=message):
        Tree("q", ("s", "o", "r"), ints(parent), floats(rate), ints(pinned), bound)
