"""What the experiments measure is what the source defines (6.1)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.placement.sand.trees import line

from thalweg.experiments.sand.measuring import Measured, Table, check, measure, usual, with_optimum
from thalweg.experiments.sand.scenes import bounded, make_scene
from thalweg.placement.arrays import NONE, ints
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CLUSTER, UNIFORM

TREE = make_tree(
    "q", (Source("a", 10, 0), Source("b", 4, 1)), (Operator("ab", ("a", "b"), 0.5),), proxy=2
)


def test_ratio_and_stretch_are_taken_from_the_baseline() -> None:
    """Joined at b: 10·10 + 7·20, against 10·30 + 4·20; 30 ms as before."""
    found = measure(TREE, line(0, 10, 30), lambda tree, ways: ints([0, 1, 1, 2]))
    assert found.ratio == pytest.approx(240 / 380)
    assert (found.stretch, found.at_sources, found.at_proxy, found.between) == (1, 1, 0, 0)


def test_hosts_in_the_proxys_domain_count_as_near_it() -> None:
    ways = line(0, 10, 30, 29)
    found = measure(TREE, ways, lambda tree, w: ints([0, 1, 3, 2]), ints([0, 0, 7, 7]))
    assert (found.at_proxy, found.between, found.by_proxy, found.elsewhere) == (0, 1, 1, 0)


def test_a_plan_that_is_late_ends_the_experiment() -> None:
    ways = line(0, 10, 30)
    with pytest.raises(RuntimeError, match="its bound is 30"):
        measure(bounded(TREE, 1.0, ways.latency_ms), ways, lambda tree, w: ints([0, 1, 0, 2]))


def test_a_plan_that_can_not_run_ends_the_experiment() -> None:
    scene = make_scene(0, 60)
    tree = next(scene.trees(UNIFORM, Shape(depths=(2,)), 1))
    for place_tree in with_optimum(usual(5)).values():
        check(scene, [tree], place_tree)

    def far_off(tree, ways):
        at = tree.pinned.copy()
        at[at == NONE] = int(np.argmax(ways.latency_ms[:, tree.proxy]))
        return ints(at)

    with pytest.raises(RuntimeError, match="can't run: latency"):
        check(scene, [bounded(tree, 1.0, scene.latency_ms)], far_off)


def test_means_are_over_trees_and_ranges_over_topologies() -> None:
    table = Table()
    for seed, ratio in ((0, 0.2), (0, 0.4), (1, 0.9)):
        table.add(("x",), seed, Measured(ratio, 1, 0, 0, 0, 0, 0))
    assert table.mean(("x",), "ratio") == pytest.approx(0.5)
    assert table.by_seed(("x",), "ratio") == pytest.approx([0.3, 0.9])
    assert (table.count(("x",)), table.count(("y",))) == (3, 0)
    table.add(("y",), 0, Measured(1, 1, 0, 0, 0, 0, 0))
    table.add(("y",), 1, Measured(2, 1, 0, 0, 0, 0, 0))
    assert np.allclose(table.lines([("x",), ("y",)], "ratio"), [[0.3, 1], [0.9, 2]])


def test_trees_repeat_and_stand_as_configured() -> None:
    scene = make_scene(1, 150)
    one, other = (list(scene.trees(CLUSTER, Shape(depths=(3,)), 2)) for _ in range(2))
    assert [t.pinned.tolist() for t in one] == [t.pinned.tolist() for t in other]
    for tree in one:
        homes = tree.pinned[list(tree.sources)]
        apd = scene.latency_ms[homes, tree.proxy].mean() / scene.latency_ms.max()
        assert apd == pytest.approx(CLUSTER.apd, rel=0.16)
    (shared,) = scene.trees(CLUSTER, Shape(depths=(3,)), 1, streams_per_host=4)
    assert len(set(shared.pinned[list(shared.sources)].tolist())) == 2
