from dataclasses import replace

import numpy as np
import pytest
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.aggregate_host import AGGREGATE_HOST
from thalweg.placement.heuristic.planner import HEURISTIC
from thalweg.placement.lp_bound import LP_BOUND, admitted_at_most
from thalweg.placement.sqpr.workload import QUICK, make_problem
from thalweg.placement.strategy import Options


def with_hosts(**limits):
    hosts = [{"name": f"h{i}", "cpu": 10, "out_bps": 100, **limits} for i in range(3)]
    return problem_of({**TWO_WAY, "hosts": hosts})


def two_queries(cpu):
    """a⋈b and a⋈c, for 6 and 4 CPU; `cpu` on one host that has everything."""
    return problem_of(
        {
            "hosts": [{"name": "h", "cpu": cpu}],
            "streams": [
                *({"name": n, "rate_bps": 1, "home": "h"} for n in "abc"),
                {"name": "ab", "rate_bps": 1},
                {"name": "ac", "rate_bps": 1},
            ],
            "operators": [
                {"name": "a⋈b", "inputs": ["a", "b"], "output": "ab", "cpu": 6},
                {"name": "a⋈c", "inputs": ["a", "c"], "output": "ac", "cpu": 4},
            ],
            "queries": [{"name": "q0", "wants": "ab"}, {"name": "q1", "wants": "ac"}],
        }
    )


@pytest.mark.parametrize(("cpu", "bound"), [(10, 2.0), (7, 1.5), (6, 4 / 3), (5, 1.0), (0, 0.0)])
def test_cpu_in_all_hosts_together_bounds_what_is_admitted(cpu, bound):
    """With 5 CPU, a⋈b fits nowhere: it is no part of the relaxation, not even a fraction of it."""
    assert admitted_at_most(two_queries(cpu)) == pytest.approx(bound)


def test_queries_for_one_stream_count_each():
    assert admitted_at_most(problem_of(TWO_WAY)) == pytest.approx(2.0)


def test_an_operator_that_fits_no_host_counts_for_nothing():
    assert admitted_at_most(with_hosts(cpu=6)) == pytest.approx(0.0)


def test_streams_of_different_homes_must_travel():
    """a or b (30 bps at least) and the result (5) leave some host: 33 bps are not enough."""
    assert admitted_at_most(with_hosts(out_bps=11)) == pytest.approx(2 * 33 / 35)
    assert admitted_at_most(with_hosts(out_bps=12)) == pytest.approx(2.0)
    assert admitted_at_most(with_hosts(in_bps=5)) == pytest.approx(2 * 15 / 30)


def test_no_problem_and_no_host_admit_nothing():
    assert admitted_at_most(problem_of({"hosts": [{"name": "h"}], "streams": []})) == 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("host_bps", [20e6, 100e6, 1e9])
def test_nobody_admits_more(seed, host_bps):
    problem = make_problem(replace(QUICK, host_bps=host_bps), seed)
    bound = LP_BOUND.plan(problem, Options()).bound
    for strategy in (HEURISTIC, AGGREGATE_HOST):
        # The aggregate host has no network: only where that is wide does the bound hold for it.
        if strategy is HEURISTIC or host_bps == 1e9:
            assert strategy.plan(problem, Options()).deployment.admitted <= bound


def test_the_bound_is_a_whole_number_and_deploys_nothing():
    outcome = LP_BOUND.plan(two_queries(7), Options())
    assert outcome.bound == 1.0
    assert outcome.deployment.admitted == 0
    assert np.array_equal(outcome.deployment.serves, [-1, -1])
    assert "no deployment admits more than 1 " in outcome.notes[0]
