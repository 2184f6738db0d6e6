from copy import deepcopy

import numpy as np
import pytest
from tests.placement.networked import networked_problem
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights
from thalweg.placement.heuristic.planner import HEURISTIC, Heuristic
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.workload import QUICK, make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify


def changed(**sections):
    return problem_of({**deepcopy(TWO_WAY), **sections})


def hosts(**limits):
    return [{"name": f"h{i}", "cpu": 10, "out_bps": 100, "in_bps": 100, **limits} for i in range(3)]


def _running(problem, deployment):
    return Problem(problem.hosts, problem.streams, problem.operators, problem.queries, deployment)


THREE_WAY = {
    "hosts": hosts(cpu=20),
    "streams": [
        {"name": "a", "rate_bps": 40, "home": "h0"},
        {"name": "b", "rate_bps": 30, "home": "h1"},
        {"name": "c", "rate_bps": 30, "home": "h2"},
        {"name": "ab", "rate_bps": 5},
        {"name": "bc", "rate_bps": 5},
        {"name": "abc", "rate_bps": 1},
    ],
    "operators": [
        {"name": "a⋈b", "inputs": ["a", "b"], "output": "ab", "cpu": 7},
        {"name": "b⋈c", "inputs": ["b", "c"], "output": "bc", "cpu": 6},
        {"name": "ab⋈c", "inputs": ["ab", "c"], "output": "abc", "cpu": 3},
        {"name": "a⋈bc", "inputs": ["a", "bc"], "output": "abc", "cpu": 4},
    ],
    "queries": [{"name": "q0", "wants": "ab"}, {"name": "q1", "wants": "abc"}],
}


def test_a_query_runs_where_it_moves_the_least():
    found = HEURISTIC.plan(changed(), Options()).deployment
    assert found.runs.tolist() == [[0, 0]]
    assert found.sends.tolist() == [[1, 0, 1]]  # b is the smaller of the two


def test_a_query_that_is_served_already_costs_nothing():
    planner = Heuristic(changed(), Options())
    assert planner.submit([0]).changed == (0, 1)
    again = planner.submit([1])
    assert (again.admitted, again.changed) == ((1,), ())
    assert planner.deployment().serves.tolist() == [0, 0]


def test_a_whole_sub_query_is_fetched_before_its_parts():
    """ab is at h0: whoever joins it with c takes it from there, though b⋈c would cost less CPU."""
    problem = problem_of(THREE_WAY)
    found = HEURISTIC.plan(problem, Options()).deployment
    assert found.runs.tolist() == [[0, 0], [2, 2]]
    assert [0, 2, 3] in found.sends.tolist()
    assert verify(problem, found) == ()


def test_weights_decide_between_the_network_and_an_even_load():
    problem = problem_of({**THREE_WAY, "queries": [{"name": "q", "wants": "abc"}]})
    by_network = HEURISTIC.plan(problem, Options(Weights(network=1.0, cpu=0.0, balance=0.0)))
    assert by_network.deployment.runs[0, 0] == 0  # a, the largest, stays where it is
    by_cpu = HEURISTIC.plan(problem, Options(Weights(network=0.0, cpu=1.0, balance=0.0)))
    assert problem.operators.cpu[by_cpu.deployment.runs[:, 1]].sum() == 10


@pytest.mark.parametrize(
    ("sections", "resource", "host", "says"),
    [
        ({"hosts": hosts(cpu=6)}, "cpu", 0, "needs 7 where 6 is free"),
        ({"hosts": hosts(in_bps=29)}, "bandwidth in", 0, "needs 30 where 29 is free"),
        ({"hosts": hosts(out_bps=29)}, "bandwidth out", 1, "needs 30 where 29 is free"),
        ({"link_bps": 20}, "link", 1, "needs 30 where 20 is free"),
    ],
)
def test_a_refusal_names_what_the_nearest_plan_lacks_and_where(sections, resource, host, says):
    refusal = HEURISTIC.plan(changed(**sections), Options()).refusals[0]
    assert (refusal.resource, refusal.host) == (resource, host)
    assert says in refusal.detail


def test_a_bound_on_latency_is_kept_or_named():
    latency = [[0, 9, 5], [9, 0, 5], [5, 5, 0]]
    for bound, admitted in ((4, 0), (5, 1)):
        query = {"name": "q0", "wants": "ab", "latency_bound_ms": bound}
        problem = changed(latency_ms=latency, queries=[query])
        outcome = HEURISTIC.plan(problem, Options())
        assert outcome.deployment.admitted == admitted
        assert verify(problem, outcome.deployment) == ()
    assert outcome.deployment.runs.tolist() == [[2, 0]]  # in the middle between a and b


def test_a_result_goes_to_its_proxy():
    problem = changed(queries=[{"name": "q0", "wants": "ab", "proxy": "h2"}])
    found = HEURISTIC.plan(problem, Options()).deployment
    assert found.serves.tolist() == [2]
    assert verify(problem, found) == ()


def test_pinned_operators_on_two_hosts_are_more_than_it_can_do():
    document = deepcopy(THREE_WAY)
    for operator, host in zip(document["operators"], ("h0", "h1", "h2", "h2"), strict=True):
        operator["pinned"] = host
    assert HEURISTIC.plan(problem_of(document), Options()).deployment.serves.tolist() == [0, 2]
    document["queries"] = [{"name": "q1", "wants": "abc"}]
    refusal = HEURISTIC.plan(problem_of(document), Options()).refusals[0]
    assert (refusal.resource, refusal.host) == ("pin", None)


def test_it_goes_on_from_what_runs():
    problem = make_problem(QUICK, 2)
    planner = Heuristic(problem, Options())
    planner.submit(range(60))
    resumed = Heuristic(_running(problem, planner.deployment()), Options())
    assert resumed.deployment() == planner.deployment()
    for query in range(60, QUICK.queries):
        assert resumed.submit([query]) == planner.submit([query])
    assert resumed.deployment() == planner.deployment()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_limits_a_deployment_may_run(seed):
    problem = networked_problem(seed)
    outcome = HEURISTIC.plan(problem, Options())
    assert verify(problem, outcome.deployment) == ()
    refused = {r.query for r in outcome.refusals}
    assert refused == set(np.flatnonzero(outcome.deployment.serves == NONE).tolist())
