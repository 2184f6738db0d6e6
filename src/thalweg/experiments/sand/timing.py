"""How long placing takes: trees of 63 nodes on every node of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from thalweg.experiments.sand.measuring import OPTIMAL, PlaceTree, measure
from thalweg.experiments.sand.scenes import bounded, make_scene
from thalweg.placement.arrays import NONE, ints
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks import latencies
from thalweg.sim.networks.scatter import CONFIGURATIONS

_BOUNDS = (1.0, 1.2, 1.5, 2.0)  # times the direct delay; the optimum is hardest in the middle


@dataclass(frozen=True)
class Times:
    """The longest CPU time of one tree, in seconds."""

    hosts: int
    unbounded: dict[str, float]  # by strategy
    bounded: float  # of the optimum


def times(nodes: int, strategies: Mapping[str, PlaceTree], trees: int) -> Times:
    """`trees` in each configuration of sources."""
    scene = make_scene(0, nodes)
    latency_ms = latencies.between(scene.topology) / 1000
    ways, stubs = Ways(latency_ms, latency_ms), scene.topology.stubs
    unbounded, late = dict.fromkeys(strategies, 0.0), 0.0
    for configuration in CONFIGURATIONS.values():
        for tree in scene.trees(configuration, Shape(depths=(5,)), trees):
            at = np.where(tree.pinned == NONE, NONE, stubs[tree.pinned])
            tree = replace(tree, pinned=ints(at))
            for name, place_tree in strategies.items():
                unbounded[name] = max(unbounded[name], measure(tree, ways, place_tree).seconds)
            for multiple in _BOUNDS:
                tied = bounded(tree, multiple, latency_ms)
                late = max(late, measure(tied, ways, strategies[OPTIMAL]).seconds)
    return Times(len(latency_ms), unbounded, late)
