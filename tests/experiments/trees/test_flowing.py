"""Rows that flow in columns do what a queue does."""

from functools import partial

import numpy as np
import pytest

from thalweg.experiments.trees.flowing import Flowing, Messages, needs, synthetic
from thalweg.experiments.trees.traces import CLASSES, drawn_interests, drawn_trace
from thalweg.experiments.trees.world import many_objects_world, one_object_world, top_nodes
from thalweg.placement.arrays import ints
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import Nodes, one_object


def test_without_work_the_loss_is_rate_times_delay_where_rows_do_not_overlap():
    delay = np.array([[0, 0.01, 0.9], [0.01, 0, 0.02], [0.9, 0.02, 0]])
    nodes = Nodes(delay, np.zeros(3), np.zeros(3))
    cargo = one_object(np.array([0, 1.0, 0.5]))
    messages = Messages(np.arange(100.0), np.zeros(100, int), np.tile([0.2, 0.7], 50))
    lost = Flowing(3, 1).play(nodes, cargo, ints([-1, 0, 1]), messages, 100.0)
    assert lost[1:] == pytest.approx([0.01, 0.5 * 0.03])


def test_a_moment_is_lost_once_however_many_rows_are_on_their_way():
    nodes = Nodes(np.array([[0, 5.0], [5.0, 0]]), np.zeros(2), np.zeros(2))
    cargo = one_object(np.array([0, 1.0]))
    messages = Messages(np.array([0.0, 1.0, 2.0]), np.zeros(3, int), np.zeros(3))
    assert Flowing(2, 1).play(nodes, cargo, ints([-1, 0]), messages, 10.0)[1] == pytest.approx(0.7)


def test_a_row_waits_for_those_before_it_across_stretches_too():
    flowing = Flowing(1, 1)
    rng = np.random.default_rng(2)
    arrived, work = np.sort(rng.random(60) * 10), rng.exponential(0.2, 60)
    found = np.concatenate(
        [flowing._begun(0, arrived[i : i + 20], work[i : i + 20]) for i in (0, 20, 40)]
    )
    free = 0.0
    for begun, at, takes in zip(found, arrived, work, strict=True):
        assert begun == pytest.approx(max(at, free))
        free = begun + takes


@pytest.mark.parametrize(
    "make",
    [partial(one_object_world, 1, 24, 6_000.0), partial(many_objects_world, 1, 24, 6_000.0, 20)],
    ids=["one object", "many objects"],
)
def test_what_is_measured_is_what_the_model_says_where_nobody_is_busy(make):
    world = make()
    (parent,) = Greedy().build(world.nodes, world.cargos)
    flowing = Flowing(len(world.nodes), 1)
    lost = flowing.play(world.nodes, world.cargos[0], parent, world.messages, world.seconds)
    said = loss(world.nodes, world.cargos, (parent,))
    assert lost[1:].mean() == pytest.approx(said, rel=0.08)


def test_nested_rows_are_needed_as_often_as_was_asked_for():
    rates = np.array([2.0, 0.5, 2.0])
    messages = synthetic(rates, 5_000, 3)
    cargo = one_object(rates)
    found = [needs(cargo, cargo.own[i], messages).sum() / 5_000 for i in (1, 2)]
    assert found == pytest.approx([0.5, 2.0], rel=0.1)


def test_prices_come_in_clusters_and_loose_classes_get_less():
    trace = drawn_trace(1, 60, 8_000)
    by_class = trace.union_rates()[:, [1 << k for k in range(CLASSES)]].mean(axis=0)
    assert (np.diff(by_class) < 0).all()
    # Rows of one price in stretches of 200 s: their variance is far above a Poisson process's.
    counts = np.histogram2d(trace.object, trace.at_s, (60, np.arange(0, 8_001, 200)))[0]
    assert counts.var(axis=1).mean() > 1.5 * counts.mean()


def test_interests_are_drawn_as_asked_for():
    own = drawn_interests(1, 200, 50, 0.6)
    assert (own[1:] != 0).mean() == pytest.approx(0.6, abs=0.02)
    assert not own[0].any()
    assert set(np.unique(own)) == {0, *(1 << k for k in range(9))}  # 0.1 itself is never drawn


def test_the_top_of_a_tree_is_found_level_by_level():
    assert top_nodes(np.array([-1, 0, 0, 1, 3, 2]), 4) == [1, 2, 3, 5]
