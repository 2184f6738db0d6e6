"""Queries are distributed over the tree that nodes have built by the protocol."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.cosmos.systems import proxies, system

from thalweg.experiments.cosmos.protocol_tree import NoTree, tree_of
from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.cost import weighted_edge_cut
from thalweg.placement.cosmos.distribution import distribute
from thalweg.placement.cosmos.model import Network
from thalweg.placement.cosmos.system import Settings, System
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks import transit_stub
from thalweg.sim.networks.hosts import scattered
from thalweg.sim.scenarios.coordinators import imperfect
from thalweg.sim.world import World

NODES = 24
SETTINGS = TreeSettings(k=2, heartbeat_us=5 * SECOND_US)


class Contacts:
    def __init__(self, others: list[Address]) -> None:
        self.others = others

    def up(self) -> list[Address]:
        return self.others


@pytest.fixture(scope="module")
def world() -> World:
    hosts = scattered(transit_stub.generate(transit_stub.small(96), 3), NODES, 3)
    started: list[Address] = []

    def build(address: Address) -> Stack:
        return Stack([CoordinatorTree(Contacts(started[:4]), SETTINGS)])

    made = World(build, seed=3, network=hosts)
    for number in range(NODES):
        made.start(f"n{number}")
        started.append(f"n{number}")
        made.run_for(SECOND_US)
    return made


def test_the_protocols_tree_serves_for_distribution(world: World) -> None:
    with pytest.raises(NoTree):  # not all have found their place yet
        tree_of(world)
    for _ in range(120):
        if imperfect(world, world.up(), SETTINGS) is None:
            break
        world.run_for(5 * SECOND_US)
    root = tree_of(world)
    assert sorted(root.providers.tolist()) == list(range(NODES))
    hosts = scattered(transit_stub.generate(transit_stub.small(96), 3), NODES, 3)
    plain = system(1, providers=NODES, queries=300, substreams=120)
    network = Network(
        floats(hosts.matrix_us / 1000), plain.network.source_ms, floats(np.ones(NODES))
    )
    made = System(network, root, plain.substreams, plain.queries)
    mapping = distribute(made, proxies(made), Settings())
    cut = [
        weighted_edge_cut(network, made.substreams, made.queries, m).total
        for m in (mapping, proxies(made))
    ]
    assert cut[0] < 0.8 * cut[1]
