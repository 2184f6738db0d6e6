"""Random trees have the shape that was asked for, and make problems that verify."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.deploying import deploy
from thalweg.placement.sand.in_network import in_network
from thalweg.placement.sand.placeable import direct_ms
from thalweg.placement.sand.placing import place
from thalweg.placement.sand.query_trees import Placed, query_tree
from thalweg.placement.sand.workload import Shape, draw_tree, problem_of_trees, unlimited
from thalweg.placement.verify import verify


def latencies(hosts: int, seed: int) -> np.ndarray:
    places = np.random.default_rng(seed).random((hosts, 2)) * 300
    return np.linalg.norm(places[:, None] - places[None, :], axis=2)


def test_a_tree_has_its_depth_fanout_rates_and_selectivities() -> None:
    shape = Shape(fanout=3, selectivity=0.5, rate_bps=(2.0, 4.0))
    tree = draw_tree(shape, 2, 7, range(9), np.random.default_rng(1))
    assert (len(tree.sources), len(tree.operators), tree.proxy) == (9, 4, 7)
    assert {len(tree.inputs[o]) for o in tree.operators} == {3}
    assert (tree.rate_bps[list(tree.sources)] >= 2).all()
    for operator in tree.operators:
        taken = tree.rate_bps[list(tree.inputs[operator])].sum()
        assert 0 <= tree.rate_bps[operator] <= 0.5 * taken


def test_the_same_seed_draws_the_same_tree() -> None:
    one, other = (draw_tree(Shape(), 3, 0, range(8), np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one.rate_bps, other.rate_bps)


def test_few_homes_are_shared() -> None:
    tree = draw_tree(Shape(), 3, 9, (4, 5), np.random.default_rng(5))
    assert tree.pinned[list(tree.sources)].tolist() == [4, 5] * 4


def test_trees_as_a_problem_give_the_same_trees_back_and_verify() -> None:
    latency = latencies(40, 3)
    rng = np.random.default_rng(3)
    trees = [draw_tree(Shape(), 3, 30 + i, rng.permutation(30)[:8], rng) for i in range(5)]
    trees = [
        type(t)(t.name, t.names, t.parent, t.rate_bps, t.pinned, 1.5 * direct_ms(t, latency))
        for t in trees
    ]
    problem, found = problem_of_trees(unlimited(latency), trees)
    for one in found:
        again = query_tree(problem, one.query)
        assert again.tree.parent.tolist() == one.tree.parent.tolist()
        assert again.tree.rate_bps.tolist() == one.tree.rate_bps.tolist()
        assert again.streams.tolist() == one.streams.tolist()
        assert again.operators.tolist() == one.operators.tolist()
    ways = Ways(latency, latency)
    placed = [Placed(one, place(one.tree, ways, in_network(10))) for one in found]
    assert verify(problem, deploy(problem, placed)) == ()


@pytest.mark.parametrize(
    "wrong", [{"fanout": 0}, {"depths": ()}, {"rate_bps": (2.0, 1.0)}, {"selectivity": -1.0}]
)
def test_shapes_that_can_not_be_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"fanout|not negative"):
        Shape(**wrong)
