"""Trees by cases, topology by topology."""

import pytest

from thalweg.experiments.sand.measuring import edge_tree, measure
from thalweg.experiments.sand.sampling import Case, Sample, sampled
from thalweg.placement.sand.workload import Shape
from thalweg.sim.networks.scatter import CLUSTER, UNIFORM

CASES = [Case(("near",), CLUSTER, Shape((2,))), Case(("far",), UNIFORM, Shape((2,)))]
SMALL = Sample(seeds=2, trees=3, nodes=200)


def silent(_text, _fraction=None):
    pass


def measured(scene, case, tree, table):
    table.add(case, scene.seed, measure(tree, scene.ways, edge_tree))


def test_every_case_has_all_trees_of_every_topology():
    table, sample = sampled(SMALL, CASES, measured, silent)
    assert sample == SMALL
    assert {case: table.count(case) for case in table.cells} == {("near",): 6, ("far",): 6}


def interrupted_in(seed):
    def stopped(scene, case, tree, table):
        if scene.seed == seed and case == ("far",):
            raise KeyboardInterrupt
        measured(scene, case, tree, table)

    return stopped


def test_interrupted_it_tells_only_of_whole_topologies():
    table, sample = sampled(SMALL, CASES, interrupted_in(1), silent)
    assert sample.seeds == 1
    assert {case: list(cells) for case, cells in table.cells.items()} == {
        ("near",): [0],
        ("far",): [0],
    }


def test_without_one_whole_topology_there_is_nothing_to_tell():
    with pytest.raises(KeyboardInterrupt):
        sampled(SMALL, CASES, interrupted_in(0), silent)
