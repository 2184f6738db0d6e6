"""Trees that share nodes in any order, played event by event beside the cost model."""

import heapq

import numpy as np
import pytest

from thalweg.experiments.trees.world import many_objects_world
from thalweg.placement.trees.cost import flows, loss
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.random_tree import RandomTree


def played(world, forest, seed):
    """A row at a time: each node has one queue for all its trees."""
    rng = np.random.default_rng(seed)
    nodes, count = world.nodes, len(world.nodes)
    demand = [flows(c, p).demand[:, 0] for c, p in zip(world.cargos, forest, strict=True)]
    children = [[np.flatnonzero(p == i) for i in range(count)] for p in forest]
    objects = np.maximum(1, sum((c.own[:, 0] != 0).astype(int) for c in world.cargos))
    messages = world.messages
    arrivals = [
        (at, number, 0)
        for number, at in enumerate(messages.at_s)  # (when, which row, at which node)
    ]
    heapq.heapify(arrivals)
    free, lost = np.zeros(count), np.zeros(count)
    last = {}
    while arrivals:
        at, number, node = heapq.heappop(arrivals)
        tree, mark = messages.object[number], messages.mark[number]
        if node and world.cargos[tree].own[node, 0] & mark:
            begun = max(messages.at_s[number], last.get((node, tree), 0.0))
            lost[node] += max(0.0, at - begun) / objects[node]
            last[node, tree] = max(at, last.get((node, tree), 0.0))
        now = max(at, free[node])
        for child in rng.permutation(children[tree][node]):
            now += rng.exponential(nodes.filter_s[node])
            if demand[tree][child] & mark:
                now += rng.exponential(nodes.send_s[node])
                heapq.heappush(arrivals, (now + nodes.delay_s[node, child], number, int(child)))
        free[node] = now
    return lost[1:].mean() / world.seconds


@pytest.mark.parametrize("strategy", [Greedy(), RandomTree()], ids=lambda s: s.name)
def test_the_model_of_a_tree_for_each_object_is_what_events_show(strategy):
    world = many_objects_world(5, 24, 12_000.0, 24, load=6.0, each=True)
    forest = strategy.build(world.nodes, world.cargos, 5)
    said = loss(world.nodes, world.cargos, forest)
    assert played(world, forest, 1) == pytest.approx(said, rel=0.1)
