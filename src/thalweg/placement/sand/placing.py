"""A whole tree, placed from the sources up (SAND 3.2: post-order), and read off from the root down.

The root stands at the proxy; the configuration chosen for each node says where its inputs stand.
"""

from __future__ import annotations

from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.sand.configurations import Asked, Configurations, Placer, Ways, at_source
from thalweg.placement.sand.placeable import Onward, check_direct, limit_ms, onward
from thalweg.placement.sand.tree import Tree


def place(tree: Tree, ways: Ways, placer: Placer) -> Ints:
    """Of each node, its host. Where nothing better is in time, operators stand at the proxy."""
    check_direct(tree, ways.latency_ms)
    ahead = onward(tree, ways.latency_ms)
    known: list[Configurations] = []
    for node, below in enumerate(tree.inputs):
        if below:
            asked = _asked(tree, node, ahead, ways.latency_ms)
            known.append(placer([known[i] for i in below], asked, ways))
        else:
            known.append(at_source(int(tree.pinned[node]), len(ways.latency_ms)))
    at = np.empty(len(tree), np.int32)
    at[tree.root] = tree.proxy
    for node in range(tree.root, -1, -1):
        for i, below_node in enumerate(tree.inputs[node]):
            at[below_node] = known[node].inputs[i, at[node]]
    return ints(at)


def at_proxy(tree: Tree, ways: Ways) -> Ints:
    """The baseline (6.1): streams go straight to the proxy, and everything that can runs there."""
    check_direct(tree, ways.latency_ms)
    return straight(tree, ways.latency_ms)


def straight(tree: Tree, latency_ms: Floats) -> Ints:
    """The baseline, whether it is in time or not."""
    ahead = onward(tree, latency_ms)
    return ints(np.where(tree.pinned == NONE, ahead.host, tree.pinned))


def _asked(tree: Tree, node: int, ahead: Onward, latency_ms: Floats) -> Asked:
    """With a bound, inputs must leave room for the way that is still ahead of them."""
    goal = int(ahead.host[node])
    room = np.full(len(latency_ms), inf)
    if tree.bound_ms < inf:
        ways = latency_ms[:, goal].copy()
        ways[goal] = 0.0
        room = limit_ms(tree) - ahead.tail_ms[node] - ways
    return Asked(tree.rate_bps[list(tree.inputs[node])], goal, room, int(tree.pinned[node]))
