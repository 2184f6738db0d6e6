"""Networks of nodes that place queries, and what they should come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from tests.placement.sand.trees import grow

from thalweg.overlay.protocol import Call
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import id_of
from thalweg.overlay.sand.messages import PlaceQuery
from thalweg.overlay.sand.protocol import Sand
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.stack import Stack
from thalweg.placement.sand.configurations import Ways, at_source
from thalweg.placement.sand.placeable import direct_ms, onward
from thalweg.placement.sand.placing import _asked
from thalweg.placement.sand.views import restricted
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World


def addresses(count):
    """In order of their numbers."""
    return [f"h{i:03}" for i in range(count)]


class Everybody:
    """An overlay that knows all: every key is one hop away, and nobody is ever down."""

    def __init__(self, own, others):
        self.own, self.others = own, others

    def next_hop(self, key):
        owner = min(self.others, key=lambda a: distance(key, id_of(a)))
        return None if owner == self.own else owner

    def is_down(self, address):
        return False


class Doubted:
    """Stands where membership would, and keeps what it is asked to look into."""

    name = "membership"
    messages = ()
    listens_to = ()

    def __init__(self):
        self.doubts = []

    def step(self, now_us, event):
        if isinstance(event, Call):
            self.doubts.append(event.request.address)
        return []


class Matrix:
    """A network by its latencies."""

    has_queues = False

    def __init__(self, latency_us):
        self.latency_us_of = latency_us

    def latency_us(self, source, target):
        return int(self.latency_us_of[source, target])


def world_of(latency_us, settings=None, delivered=None):
    names = addresses(len(latency_us))

    def build(address):
        knows = Everybody(address, names)
        return Stack([Doubted(), Sand(knows, knows, settings or SandSettings())])

    world = World(build, seed=1, network=Matrix(latency_us), on_deliver=delivered)
    for name in names:
        world.start(name)
    return world


def sand_at(world, address):
    return world.hosts[address].stack["sand"]


def place_and_run(world, query, seconds=8):
    world.call(query.proxy, "sand", PlaceQuery(query))
    world.run_for(seconds * SECOND_US)


def standing(world, query):
    """Of each node that is no source, the hosts at which it is mapped."""
    found = {}
    for host in world.up():
        for name, node in host.stack["sand"].hosting.running:
            if name == query.name:
                found.setdefault(node, []).append(host.address)
    return found


@st.composite
def drawn(draw, most_hosts=7, most_sources=6):
    """A tree on a network of whole microseconds, and a slack for a bound (or none)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hosts = draw(st.integers(1, most_hosts))
    tree = grow(
        rng, hosts, draw(st.integers(1, most_sources)), draw(st.sampled_from([0.0, 0.0, 0.3]))
    )
    half = rng.integers(1, 50_000, (hosts, hosts))
    latency_us = np.triu(half, 1) + np.triu(half, 1).T
    latency_ms = latency_us / 1_000
    slack = draw(st.sampled_from([None, 1.0, 1.3]))
    if slack is not None:
        tree = replace(tree, bound_ms=slack * direct_ms(tree, latency_ms))
    return tree, latency_us, Ways(latency_ms, latency_ms)


def carried(tree, node, algorithm):
    """What 4.2 and 4.3 let a MAP carry of a node: where its ancestors may want it."""
    leaves = {}
    for i, below in enumerate(tree.inputs):
        leaves[i] = set().union(*(leaves[j] for j in below)) if below else {int(tree.pinned[i])}
    found = set() if algorithm == "edge" else set(leaves[node])
    at = node
    while tree.parent[at] >= 0:
        at = int(tree.parent[at])
        if tree.pinned[at] >= 0:
            found.add(int(tree.pinned[at]))
        else:
            found |= set.intersection(*(leaves[i] for i in tree.inputs[at]))
    return found


def centralised(tree, ways, placer, algorithm, tops):
    """`placement.sand.placing.place`, but for what zones keep to themselves."""
    ahead = onward(tree, ways.latency_ms)
    known = []
    for node, below in enumerate(tree.inputs):
        if not below:
            known.append(at_source(int(tree.pinned[node]), len(ways.weight)))
            continue
        asked = _asked(tree, node, ahead, ways.latency_ms)
        found = placer([known[i] for i in below], asked, ways)
        known.append(
            restricted(found, carried(tree, node, algorithm)) if tops[node] == node else found
        )
    at = [tree.proxy] * len(tree)
    for node in range(tree.root, -1, -1):
        for i, below in enumerate(tree.inputs[node]):
            at[below] = int(known[node].inputs[i, at[node]])
    return at
