"""The cost model, by hand and by its laws."""

import numpy as np
import pytest
from tests.placement.trees.problems import CARGOS, drawn_nodes, nested

from thalweg.placement.arrays import ints
from thalweg.placement.trees.cost import AdaptationCost, flows, loss, losses
from thalweg.placement.trees.model import Cargo, Nodes, NoTree, one_object, one_tree, tree_each
from thalweg.placement.trees.random_tree import RandomTree


def three_in_a_row(rates=(0, 2.0, 1.0)):
    delay = np.array([[0, 0.01, 0.05], [0.01, 0, 0.02], [0.05, 0.02, 0]])
    nodes = Nodes(delay, np.array([0.001, 0.004, 0.004]), np.array([0.002, 0.003, 0.003]))
    return nodes, [one_object(np.array(rates))]


def test_a_chain_by_hand():
    nodes, cargos = three_in_a_row()
    found = losses(nodes, cargos, (ints([-1, 0, 1]),))
    # At the home every row goes to its one child: t = 1 + 2 ms, ρ = 2·t.
    t, rho = 0.003, 0.006
    g0 = (1 + rho) / (2 * (1 - rho)) * t + 0.003 - t / 2
    # At node 1 half of the rows are sent on: t = 4 + 3/2 ms.
    t, rho = 0.0055, 0.011
    g1 = (1 + rho) / (2 * (1 - rho)) * t + 0.007 - t / 2
    assert found[1] == pytest.approx(2 * (g0 + 0.01))
    assert found[2] == pytest.approx(1 * (g0 + 0.01 + g1 + 0.02))


def test_the_most_demanding_below_counts_for_all_above():
    _, cargos = three_in_a_row(rates=(0, 1.0, 3.0))
    assert flows(cargos[0], ints([-1, 0, 1])).demand[1] == 3.0


def test_many_objects_in_one_tree_are_checked_only_where_wanted():
    own = np.array([[0, 0], [1.0, 2.0], [0, 1.0]])
    found = flows(one_tree(own)[0], ints([-1, 0, 1]))
    assert found.checks[1] == 2.0  # node 2 wants the second object only
    assert found.rate[1] == 2.0  # and rows of the first cause no work there
    assert found.checks[0] == found.rate[0] == 3.0


def test_one_object_in_a_tree_of_its_own_is_the_same():
    nodes, _ = three_in_a_row()
    own = np.array([[0.0], [2.0], [1.0]])
    parent = (ints([-1, 0, 1]),)
    assert loss(nodes, one_tree(own), parent) == loss(nodes, tree_each(own), parent)


def test_trees_meet_at_the_nodes_that_they_share():
    nodes, cargos = three_in_a_row()
    alone = losses(nodes, cargos, (ints([-1, 0, 1]),))
    beside = losses(nodes, cargos * 2, (ints([-1, 0, 1]),) * 2)
    assert (beside > 2 * alone)[1:].all()  # the queue is longer for both


def test_an_overloaded_node_is_infinitely_bad():
    nodes, cargos = three_in_a_row(rates=(0, 160.0, 150.0))
    assert loss(nodes, cargos, (ints([-1, 0, 1]),)) == np.inf
    assert loss(nodes, cargos, (ints([-1, 0, 0]),)) < np.inf


def test_unions_cost_more_than_the_strictest_and_less_than_the_sum():
    table = np.array([[0, 1.0, 1.0, 1.6]])
    cargo = Cargo(np.array([[0], [1], [2]]), np.array([0, 1.0, 1.0]), table)
    found = flows(cargo, ints([-1, 0, 1]))
    assert cargo.rates(found.demand)[:, 0].tolist() == [1.6, 1.6, 1.0]


def test_what_is_no_tree_is_refused():
    nodes, cargos = three_in_a_row()
    with pytest.raises(NoTree, match="node 1"):
        loss(nodes, cargos, (ints([-1, 2, 1]),))


@pytest.mark.parametrize("kind", CARGOS)
def test_nobody_loses_less_when_nodes_get_slower(kind):
    nodes, cargos = drawn_nodes(12, 1), CARGOS[kind](12, 1)
    slow = Nodes(nodes.delay_s, nodes.filter_s * 1.5, nodes.send_s * 1.5)
    forest = RandomTree().build(nodes, cargos, 1)
    assert (losses(slow, cargos, forest) >= losses(nodes, cargos, forest)).all()


def test_adaptation_takes_a_share_of_a_nodes_time():
    nodes, cargos = drawn_nodes(40, 2), nested(40, 2)
    forest = RandomTree().build(nodes, cargos, 2)
    plain = loss(nodes, cargos, forest)
    adapting = loss(nodes, cargos, forest, AdaptationCost())
    assert plain < adapting < 1.001 * plain
    dear = AdaptationCost(decide_s=1e-3)
    assert loss(nodes, cargos, forest, dear) > adapting


def test_what_a_node_considers_is_counted_as_in_the_source():
    cost = AdaptationCost(collect_s=0, decide_s=1.0, decide_every_s=1.0)
    # Two children with two children each: 4 promotions, 4 demotions (|C|²), 8 cousins, 8 others.
    assert cost.busy(np.array([2]), np.array([4]), np.array([8]), 1) == 4 + 4 + 8 + 8
