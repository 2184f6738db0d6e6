"""What the ledger says after one change is what the whole model says."""

import numpy as np
import pytest
from tests.placement.trees.problems import CARGOS, drawn_nodes

from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.random_tree import RandomTree


@pytest.mark.parametrize("kind", CARGOS)
@pytest.mark.parametrize("seed", range(4))
def test_moves_are_worth_what_the_whole_model_says(kind, seed):
    count = 14
    nodes, cargos = drawn_nodes(count, seed), CARGOS[kind](count, seed)
    ledger = Ledger(nodes, cargos, RandomTree().build(nodes, cargos, seed))
    rng = np.random.default_rng(seed)
    done = 0
    for _ in range(150):
        tree = int(rng.integers(len(cargos)))
        node, to = (int(i) for i in rng.choice(ledger.members[tree], 2))
        if node == 0 or node == to:
            continue
        move = ledger.move(tree, node, to)
        if move is None:
            continue
        before = loss(nodes, cargos, ledger.forest())
        ledger.carry_out(move)
        after = loss(nodes, cargos, ledger.forest())
        assert move.delta / (count - 1) == pytest.approx(after - before, abs=1e-9)
        assert ledger.total / (count - 1) == pytest.approx(after)
        done += 1
    assert done > 50


def test_a_node_does_not_hang_below_itself():
    nodes, cargos = drawn_nodes(5, 0), CARGOS["one object"](5, 0)
    from thalweg.placement.arrays import ints

    ledger = Ledger(nodes, cargos, (ints([-1, 0, 1, 2, 0]),))
    assert ledger.move(0, 1, 3) is None
    assert ledger.move(0, 1, 0) is None  # where it hangs already
    assert ledger.move(0, 3, 4) is not None


def test_a_search_finds_its_way_out_of_overload():
    nodes, cargos = drawn_nodes(6, 0), CARGOS["one object"](6, 0)
    heavy = [type(c)(c.own * 60, c.weight * 60) for c in cargos]
    from thalweg.placement.arrays import ints

    star = (ints([-1, 0, 1, 1, 1, 1]),)
    assert loss(nodes, heavy, star) == np.inf
    ledger = Ledger(nodes, heavy, star)
    move = ledger.move(0, 5, 0)
    assert move is not None
    assert move.delta < 0
