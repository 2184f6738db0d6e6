"""Every strategy gives trees over those who want something; the better ones are better."""

import numpy as np
import pytest
from tests.placement.trees.problems import CARGOS, drawn_nodes, nested

from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.cost import flows, loss, losses
from thalweg.placement.trees.dita import DiTA
from thalweg.placement.trees.greedy import Greedy, growth, join_order
from thalweg.placement.trees.growing import Growing, Totals
from thalweg.placement.trees.model import depths
from thalweg.placement.trees.random_tree import RandomTree
from thalweg.placement.trees.source_based import SourceBased
from thalweg.placement.trees.strategies import TREE_STRATEGIES

BRIEF = Annealing(Cooling(moves_per_node=8, factor=0.8))


@pytest.mark.parametrize("kind", CARGOS)
@pytest.mark.parametrize("strategy", [Greedy(), BRIEF, DiTA((2, 4)), SourceBased(), RandomTree()])
def test_trees_reach_all_who_want_something_and_nobody_else(kind, strategy):
    nodes, cargos = drawn_nodes(16, 3), CARGOS[kind](16, 3)
    for cargo, parent in zip(cargos, strategy.build(nodes, cargos, 3), strict=True):
        depths(parent, cargo.members)  # refuses what is no tree
        assert ((parent >= 0) == (cargo.members & (np.arange(16) > 0))).all()


@pytest.mark.parametrize("kind", CARGOS)
def test_greedy_chooses_by_what_the_whole_model_would_say(kind):
    nodes, cargos = drawn_nodes(10, 4), CARGOS[kind](10, 4)
    totals = Totals(len(nodes))
    trees = [Growing(nodes, c, totals) for c in cargos]
    joined = np.zeros(len(nodes), bool)

    def whole():
        part = [
            type(c)(
                np.where(joined[:, None], c.own, 0), np.where(joined, c.weight, 0), c.union_rate
            )
            for c in cargos
        ]
        return losses(nodes, part, tuple(t.parents() for t in trees)).sum()

    for node in join_order(nodes):
        for tree in trees:
            if not tree.cargo.members[node]:
                continue
            grows = growth(nodes, tree, node)
            tree.add(node, int(tree.ids[int(grows.argmin())]))
        before = whole()
        joined[node] = True
        assert whole() > before
    single = [t for t in trees if t.cargo.members[join_order(nodes)[-1]]]
    assert single


def test_growth_is_what_the_loss_grows_by():
    nodes, cargos = drawn_nodes(12, 5), nested(12, 5)
    tree = Growing(nodes, cargos[0], Totals(12))
    order = join_order(nodes)
    for node in order[:-1]:
        tree.add(node, int(tree.ids[int(growth(nodes, tree, node).argmin())]))
    last = order[-1]
    grows = growth(nodes, tree, last)
    without = cargos[0].own.copy()
    without[last] = 0
    part = [type(cargos[0])(without, without[:, 0].copy())]
    before = losses(nodes, part, (tree.parents(),)).sum()
    for column, parent in enumerate(tree.ids):
        hung = tree.parents().copy()
        hung[last] = parent
        after = losses(nodes, cargos, (hung,)).sum()
        assert grows[column] == pytest.approx(after - before)


@pytest.mark.parametrize("kind", CARGOS)
def test_greedy_beats_random_and_annealing_is_no_worse_than_either(kind):
    nodes, cargos = drawn_nodes(24, 6), CARGOS[kind](24, 6)
    cost = {
        s.name: loss(nodes, cargos, s.build(nodes, cargos, 6))
        for s in (Greedy(), RandomTree(), Annealing(Cooling(moves_per_node=24, factor=0.9)))
    }
    assert cost["greedy"] < cost["random"]
    assert cost["SA"] < 1.05 * cost["greedy"]


def test_annealing_is_the_same_for_the_same_seed():
    nodes, cargos = drawn_nodes(12, 7), nested(12, 7)
    once, again = (BRIEF.build(nodes, cargos, 7)[0] for _ in range(2))
    assert (once == again).all()


def test_dita_serves_nobody_who_is_stricter_and_keeps_its_fanout():
    nodes, cargos = drawn_nodes(30, 8), nested(30, 8)
    (parent,) = DiTA((3,)).build(nodes, cargos)
    rate = cargos[0].own[:, 0]
    for i, p in enumerate(parent):
        if p > 0:
            assert rate[p] >= rate[i]
    assert np.bincount(parent[parent >= 0]).max() <= 3
    assert flows(cargos[0], parent).demand[1:, 0] == pytest.approx(rate[1:])  # r^m is r


def test_dita_tries_fanouts_and_keeps_the_best():
    nodes, cargos = drawn_nodes(30, 9), nested(30, 9)
    tried = [loss(nodes, cargos, DiTA((f,)).build(nodes, cargos)) for f in (2, 4, 8)]
    assert loss(nodes, cargos, DiTA((2, 4, 8)).build(nodes, cargos)) == min(tried)


def test_strategies_are_listed_by_name():
    assert list(TREE_STRATEGIES) == ["greedy", "SA", "DiTA", "source-based", "random"]
    assert all(s.about for s in TREE_STRATEGIES.values())
