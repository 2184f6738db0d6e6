"""What a node's view says that a transformation is worth, the whole model says too."""

import numpy as np
import pytest
from tests.placement.trees.problems import CARGOS, drawn_nodes

from thalweg.overlay.trees.transformations.choice import TRANSFORMATIONS, best, considered
from thalweg.placement.arrays import ints
from thalweg.placement.trees.cost import losses
from thalweg.placement.trees.ledger import Ledger
from thalweg.placement.trees.random_tree import RandomTree
from thalweg.placement.trees.seeing import view_of

COUNT = 16


def after(parent, ids, moves):
    found = parent.copy()
    for node, to in moves:
        found[ids[node]] = ids[to]
    return ints(found)


def view_at_home(nodes, cargos):
    ledger = Ledger(nodes, cargos, RandomTree().build(nodes, cargos, 1))
    return view_of(ledger, nodes, cargos[0], 0, 0)[0]


@pytest.mark.parametrize("kind", CARGOS)
@pytest.mark.parametrize("rule", TRANSFORMATIONS, ids=lambda rule: rule.name)
def test_a_benefit_is_what_the_whole_model_recomputed_says(kind, rule):
    checked = 0
    for seed in range(5):
        nodes, cargos = drawn_nodes(COUNT, seed), CARGOS[kind](COUNT, seed)
        forest = RandomTree().build(nodes, cargos, seed)
        before = losses(nodes, cargos, forest).sum()
        for tree in range(min(2, len(cargos))):
            ledger = Ledger(nodes, cargos, forest)
            for node in range(COUNT):
                view, ids = view_of(ledger, nodes, cargos[tree], tree, node)
                columns = rule.candidates(view)
                delta = rule.delta(view, *columns) if len(columns[0]) else []
                for at in range(0, len(delta), 3):
                    moves = rule.moves(*(int(c[at]) for c in columns))
                    changed = list(forest)
                    changed[tree] = after(forest[tree], ids, moves)
                    whole = losses(nodes, cargos, tuple(changed)).sum()
                    assert delta[at] == pytest.approx(whole - before, abs=1e-9)
                    checked += 1
    assert checked > 10


def test_the_best_of_all_six_is_chosen_and_all_six_are_chosen_somewhere():
    chosen = set()
    for seed in range(30):
        nodes, cargos = drawn_nodes(24, seed), CARGOS["one object"](24, seed)
        forest = RandomTree().build(nodes, cargos, seed)
        ledger = Ledger(nodes, cargos, forest)
        for node in range(24):
            view, _ = view_of(ledger, nodes, cargos[0], 0, node)
            choice = best(view)
            if choice is None:
                continue
            chosen.add(choice.transformation)
            for rule in TRANSFORMATIONS:
                columns = rule.candidates(view)
                if len(columns[0]):
                    assert choice.benefit >= -rule.delta(view, *columns).min() - 1e-12
    assert chosen == {rule.name for rule in TRANSFORMATIONS}


def test_nothing_is_done_for_less_than_is_asked():
    nodes, cargos = drawn_nodes(24, 1), CARGOS["one object"](24, 1)
    view = view_at_home(nodes, cargos)
    choice = best(view)
    assert choice is not None
    assert best(view, least=choice.benefit) is None
    assert considered(view) > 10


def test_a_delay_that_is_not_known_is_no_reason_to_move():
    nodes, cargos = drawn_nodes(24, 1), CARGOS["one object"](24, 1)
    view = view_at_home(nodes, cargos)
    view.delay_s[:] = np.nan
    assert best(view) is None
