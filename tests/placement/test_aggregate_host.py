from dataclasses import replace

import numpy as np
import pytest
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.abstract import cpu_with_full_reuse
from thalweg.placement.aggregate_host import AGGREGATE_HOST, aggregated
from thalweg.placement.arrays import NONE
from thalweg.placement.sqpr.workload import QUICK, make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify


def test_one_host_has_all_cpu_and_all_base_streams():
    one = aggregated(make_problem(QUICK, 1))
    assert len(one.hosts) == 1
    assert one.hosts.cpu[0] == pytest.approx(make_problem(QUICK, 1).hosts.cpu.sum())
    assert set(one.streams.home.tolist()) == {NONE, 0}


@pytest.mark.parametrize("seed", range(5))
def test_its_deployment_is_one_of_the_aggregated_problem(seed):
    outcome = AGGREGATE_HOST.plan(make_problem(QUICK, seed), Options())
    assert verify(outcome.problem, outcome.deployment) == ()
    assert outcome.deployment.admitted + len(outcome.refusals) == QUICK.queries


def test_with_all_the_cpu_that_full_reuse_needs_everyone_is_in():
    problem = make_problem(replace(QUICK, cpu_share=1.0 + 1e-9), 4)
    outcome = AGGREGATE_HOST.plan(problem, Options())
    assert outcome.refusals == ()
    used = problem.operators.cpu[outcome.deployment.runs[:, 1]].sum()
    assert used == pytest.approx(cpu_with_full_reuse(problem))


def test_a_query_is_refused_for_cpu_with_the_numbers():
    small = {**TWO_WAY, "hosts": [{"name": f"h{i}", "cpu": 2} for i in range(3)]}
    refusal = AGGREGATE_HOST.plan(problem_of(small), Options()).refusals[0]
    assert (refusal.query, refusal.resource, refusal.host) == (0, "cpu", None)
    assert refusal.detail == "its cheapest plan needs 7 CPU more, and 6 is free"


def test_what_is_made_is_made_once():
    deployed = AGGREGATE_HOST.plan(problem_of(TWO_WAY), Options()).deployment
    assert deployed.runs.tolist() == [[0, 0]]
    assert np.array_equal(deployed.serves, [0, 0])
