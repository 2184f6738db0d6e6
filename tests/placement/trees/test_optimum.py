"""The optimum is the best of all trees, and nothing is below the bound."""

import itertools

import numpy as np
import pytest
from tests.placement.trees.problems import CARGOS, drawn_nodes, nested, together

from thalweg.placement.arrays import ints
from thalweg.placement.trees.annealing import Annealing, Cooling
from thalweg.placement.trees.bound import cheapest_ways, lower_bound
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import NoTree
from thalweg.placement.trees.optimum import TooLarge, optimum


def all_trees(count):
    for parents in itertools.product(range(count), repeat=count - 1):
        yield ints([-1, *parents])


def least(nodes, cargos):
    found = np.inf
    for parent in all_trees(len(nodes)):
        try:
            found = min(found, loss(nodes, cargos, (parent,)))
        except (NoTree, RecursionError):
            continue
    return found


@pytest.mark.parametrize("seed", range(3))
def test_branch_and_bound_finds_what_enumeration_finds(seed):
    nodes = drawn_nodes(6, seed, load=3.0)
    for cargos in (nested(6, seed, highest=8), together(6, 3, seed)):
        members = cargos[0].members
        if not members.all():
            continue
        found = loss(nodes, cargos, (optimum(nodes, cargos[0]),))
        assert found == pytest.approx(least(nodes, cargos))


def test_heavy_loads_have_optima_too():
    nodes, cargos = drawn_nodes(6, 5, load=5.0), nested(6, 5, highest=25)
    assert loss(nodes, cargos, (optimum(nodes, cargos[0]),)) == pytest.approx(least(nodes, cargos))


@pytest.mark.parametrize("seed", range(3))
def test_annealing_is_within_five_percent_of_the_optimum(seed):
    nodes, cargos = drawn_nodes(8, seed, load=2.0), nested(8, seed, highest=4)
    best = loss(nodes, cargos, (optimum(nodes, cargos[0]),))
    for strategy, within in ((Annealing(Cooling(moves_per_node=32)), 1.05), (Greedy(), 1.25)):
        found = loss(nodes, cargos, strategy.build(nodes, cargos, seed))
        assert best <= found * (1 + 1e-9)
        assert found <= within * best


@pytest.mark.parametrize("kind", CARGOS)
@pytest.mark.parametrize("seed", range(4))
def test_no_tree_is_below_the_bound(kind, seed):
    nodes, cargos = drawn_nodes(20, seed, load=3.0), CARGOS[kind](20, seed)
    bound = lower_bound(nodes, cargos)
    assert 0 < bound <= loss(nodes, cargos, Greedy().build(nodes, cargos))
    nodes, cargos = drawn_nodes(6, seed, load=3.0), nested(6, seed, highest=9)
    assert lower_bound(nodes, cargos) <= least(nodes, cargos) * (1 + 1e-9)


def test_the_cheapest_way_may_lead_through_others():
    nodes = drawn_nodes(3, 1)
    delay = np.array([[0, 0.01, 0.9], [0.01, 0, 0.01], [0.9, 0.01, 0]])
    ways = cheapest_ways(type(nodes)(delay, nodes.filter_s, nodes.send_s))
    assert ways[2] < 0.1


def test_large_instances_are_refused():
    with pytest.raises(TooLarge, match="up to 11"):
        optimum(drawn_nodes(12, 1), nested(12, 1)[0])
