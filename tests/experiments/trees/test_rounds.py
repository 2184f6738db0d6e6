"""Rounds over columns, beside what the protocol arrives at with messages."""

import numpy as np
import pytest

from thalweg.experiments.trees.course import course
from thalweg.experiments.trees.rounds import Rounds, changed
from thalweg.experiments.trees.setting import drawn_nodes
from thalweg.experiments.trees.world import one_object_world
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack
from thalweg.overlay.trees.protocol import Capacity, Trees
from thalweg.overlay.trees.row_messages import Offer, Publish, Read
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.stream import Spec, Tree
from thalweg.overlay.trees.subscriptions import Subscriptions
from thalweg.placement.arrays import ints
from thalweg.placement.trees.cost import loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import HOME, Nodes, one_object
from thalweg.placement.trees.random_tree import RandomTree
from thalweg.placement.trees.source_based import SourceBased
from thalweg.sim.scenarios.trees import parent_of, trees_at
from thalweg.sim.world import World

SECOND_US = 1_000_000


def test_rounds_improve_a_random_tree_until_nothing_is_left_to_gain():
    world = one_object_world(2, 40, 1_000.0, load=3.0)
    rounds = Rounds(RandomTree().build(world.nodes, world.cargos, 2))
    costs = [loss(world.nodes, world.cargos, rounds.forest)]
    while rounds.round(world.nodes, world.cargos):
        costs.append(loss(world.nodes, world.cargos, rounds.forest))
        assert costs[-1] < costs[-2]
    greedy = loss(world.nodes, world.cargos, Greedy().build(world.nodes, world.cargos))
    assert costs[-1] < 1.1 * greedy < costs[0]
    assert len(rounds.done) >= 5


def test_what_changed_little_is_not_told():
    told, measured = np.array([1.0, 1.0, 1.0, 0.0, 1.0]), np.array([1.1, 1.3, 0.7, 2.0, 0.0])
    assert changed(told, measured).tolist() == [1.0, 1.3, 0.7, 2.0, 1.0]


def test_a_slow_node_at_the_top_is_lowered_while_rows_flow():
    world = one_object_world(3, 40, 6_000.0)
    (parent,) = Greedy().build(world.nodes, world.cargos)
    fanout = np.bincount(parent[parent > HOME], minlength=len(parent))
    slow = world.slowed([int(i) for i in np.argsort(-fanout)[:3]], 20.0)
    stays = course(world, parent, adapts=False, seed=3, after=(2_000.0, slow))
    moves = course(world, parent, adapts=True, seed=3, after=(2_000.0, slow))
    assert stays.mean(20) > 1.5 * stays.mean(0, 10)
    assert moves.mean(20) < 0.8 * stays.mean(20)


class Measured:
    """Delays of drawn nodes, for the simulator."""

    has_queues = False

    def __init__(self, nodes: Nodes) -> None:
        self._us = (nodes.delay_s * SECOND_US).astype(int).tolist()

    def latency_us(self, source: int, target: int) -> int:
        return self._us[source][target]


@pytest.fixture(scope="module")
def played() -> tuple[Nodes, list[np.ndarray], World]:
    """Twenty nodes that all join at the home, and what the protocol makes of it."""
    nodes, count = drawn_nodes(4, 20, 3.0), 21
    times = TreeTimes(
        round_us=40 * SECOND_US,
        window_us=10 * SECOND_US,
        beat_us=2 * SECOND_US,
        lease_us=8 * SECOND_US,
        stale_us=30 * SECOND_US,
    )

    def build(_: str) -> Stack:
        membership, streams = Membership(), Subscriptions(SECOND_US, 5 * SECOND_US)
        return Stack([membership, streams, Trees(membership, streams, times)])

    world = World(build, seed=4, network=Measured(nodes))
    tree = Tree("n0", "s")
    for i in range(count):
        world.start(f"n{i}")
        world.call(f"n{i}", "membership", Join(("n0",)))
        capacity = Capacity(nodes.filter_s[i] * SECOND_US, nodes.send_s[i] * SECOND_US)
        world.call(f"n{i}", "trees", capacity)
    world.call("n0", "subscriptions", Offer(tree))
    for i in range(1, count):
        world.call(f"n{i}", "subscriptions", Read(tree, Spec("deviation", 0)))
    found = []
    for second in range(800):
        for part in range(3):
            world.call("n0", "subscriptions", Publish(tree, second * 10 + part))
        world.run_for(SECOND_US)
        if second in (30, 799):
            parents = [parent_of(world, f"n{i}", tree) for i in range(count)]
            found.append(ints([-1 if p is None else int(p[1:]) for p in parents]))
    return nodes, found, world


def test_the_protocol_comes_as_near_as_rounds_over_columns_do(played):
    nodes, (first, last), _ = played
    cargos = [one_object(np.full(21, 3.0))]
    star = loss(nodes, cargos, SourceBased().build(nodes, cargos))
    assert loss(nodes, cargos, (first,)) > 0.7 * star  # it began with nearly all at the home
    rounds = Rounds(SourceBased().build(nodes, cargos))
    while rounds.round(nodes, cargos):
        pass
    in_columns = loss(nodes, cargos, rounds.forest)
    assert loss(nodes, cargos, (last,)) < 1.1 * in_columns


def test_a_node_keeps_what_its_children_and_grandchildren_told_and_no_more(played):
    _, (_, last), world = played
    for i in range(21):
        (place,) = trees_at(world.hosts[f"n{i}"]).places.values()
        kids = [f"n{k}" for k in np.flatnonzero(last == i)]
        assert sorted(place.children) == sorted(kids)
        for kid, child in place.children.items():
            below = {f"n{k}" for k in np.flatnonzero(last == int(kid[1:]))}
            assert set(child.kids) == below
            assert child.report is not None
            assert child.report.children == len(below)
