import numpy as np

from thalweg.experiments.sqpr.cluster import cluster, cluster_problem
from thalweg.placement.aggregate_host import AGGREGATE_HOST
from thalweg.placement.sqpr.workload import make_problem
from thalweg.placement.strategy import Options

CLUSTER = cluster(hosts=4, base_streams=30, queries=50, joins_per_host=5, host_mbps=10.0)


def test_a_host_has_cpu_for_as_many_joins_of_base_streams():
    problem = cluster_problem(CLUSTER, 0)
    join = problem.operators.cpu.max()
    assert np.floor(problem.hosts.cpu[0] / join) == 5


def test_only_the_order_of_operators_is_drawn():
    drawn, plain = cluster_problem(CLUSTER, 3), make_problem(CLUSTER, 3)
    assert drawn.operators.names != plain.operators.names
    assert sorted(drawn.operators.names) == sorted(plain.operators.names)
    by_name = dict(zip(drawn.operators.names, drawn.operators.output.tolist(), strict=True))
    for name, output in zip(plain.operators.names, plain.operators.output.tolist(), strict=True):
        assert by_name[name] == output
    admitted = [AGGREGATE_HOST.plan(p, Options()).deployment.admitted for p in (drawn, plain)]
    assert admitted[0] == admitted[1]


def test_the_same_seed_draws_the_same_order():
    once, again = cluster_problem(CLUSTER, 3), cluster_problem(CLUSTER, 3)
    assert once.operators.names == again.operators.names
