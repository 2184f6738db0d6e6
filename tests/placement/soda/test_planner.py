from dataclasses import replace
from math import inf

import numpy as np
import pytest
from tests.placement.networked import SMALL, networked_problem
from tests.placement.problems import problem_of, two_way
from tests.placement.soda.test_macro_w import problem as joins

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.cost import Weights
from thalweg.placement.deployment import deployment
from thalweg.placement.problem import Problem, Queries
from thalweg.placement.soda import SODA, Soda
from thalweg.placement.sqpr.workload import make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

CROWDED = replace(SMALL, queries=90, host_bps=100e6, cpu_share=0.6)


def five_joins(cpu):
    asked = joins(cpu=cpu, joins=5)
    wanted = ints(asked.operators.output)
    nobody, never = ints([NONE] * 5), floats([inf] * 5)
    queries = Queries(tuple("abcde"), wanted, nobody, never)
    return Problem(asked.hosts, asked.streams, asked.operators, queries)


def running(problem, deployed):
    return Problem(problem.hosts, problem.streams, problem.operators, problem.queries, deployed)


@pytest.mark.parametrize("seed", range(3))
def test_epochs_keep_what_they_admitted_and_what_they_deploy_may_run(seed):
    problem = make_problem(CROWDED, seed)
    planner = Soda(problem, Options(work_limit=50))
    admitted = set()
    for first in range(0, CROWDED.queries, 30):
        decision = planner.submit(range(first, first + 30))
        admitted.update(decision.admitted)
        deployed = planner.deployment()
        assert verify(problem, deployed) == ()
        assert set(np.flatnonzero(deployed.serves != NONE).tolist()) == admitted
        assert len(decision.admitted) + len(decision.refusals) == 30
    assert 0 < len(admitted) < CROWDED.queries


def test_every_stream_is_made_once_and_never_relayed():
    problem = make_problem(CROWDED, 1)
    deployed = SODA.plan(problem, Options(work_limit=50, batch=30)).deployment
    outputs = problem.operators.output[deployed.runs[:, 1]].tolist()
    assert len(set(outputs)) == len(outputs)
    maker = dict(zip(outputs, deployed.runs[:, 0].tolist(), strict=True))
    for source, _, stream in deployed.sends.tolist():
        assert source == maker.get(stream, int(problem.streams.home[stream]))


def test_hosts_are_told_what_changed():
    problem = make_problem(CROWDED, 1)
    planner = Soda(problem, Options(work_limit=50))
    runs = set()
    for first in (0, 30):
        decision = planner.submit(range(first, first + 30))
        assert decision.changed == tuple(change.host for change in decision.changes)
        runs -= {(c.host, o) for c in decision.changes for o in c.stops}
        runs |= {(c.host, o) for c in decision.changes for o in c.starts}
    assert runs == set(map(tuple, planner.deployment().runs.tolist()))


def test_the_same_problem_gets_the_same_plan():
    once, again = (
        SODA.plan(make_problem(CROWDED, 2), Options(work_limit=50, batch=30)) for _ in range(2)
    )
    assert once.deployment == again.deployment


def test_refusals_say_whether_totals_or_a_host_were_short():
    """Joins of 4 CPU on two hosts of 7.9: three pass by totals, but a host takes only one."""
    problem = five_joins(cpu=7.9)
    outcome = SODA.plan(problem, Options(batch=5))
    assert outcome.deployment.admitted == 2
    by_totals = [r for r in outcome.refusals if r.host is None]
    assert [r.query for r in by_totals] == [3, 4]
    assert all("all hosts together have 3.8" in r.detail for r in by_totals)
    (by_host,) = (r for r in outcome.refusals if r.host is not None)
    assert by_host.detail == "after all moves, 8 would be needed of 7.9"


@pytest.mark.parametrize("seed", range(16))
def test_whatever_limits_a_deployment_may_run(seed):
    problem = networked_problem(seed)
    outcome = SODA.plan(problem, Options(work_limit=30, batch=10))
    assert verify(problem, outcome.deployment) == ()
    refused = {r.query for r in outcome.refusals}
    assert refused == set(np.flatnonzero(outcome.deployment.serves == NONE).tolist())


def test_it_goes_on_from_what_it_deployed():
    problem = make_problem(CROWDED, 1)
    planner = Soda(problem, Options(work_limit=50))
    planner.submit(range(50))
    resumed = Soda(running(problem, planner.deployment()), Options(work_limit=50))
    assert resumed.deployment() == planner.deployment()
    assert resumed.submit(range(50, 60)).admitted == planner.submit(range(50, 60)).admitted


@pytest.mark.parametrize(
    ("deployed", "says"),
    [
        ({"runs": [(0, 0), (1, 0)], "sends": [(1, 0, 1), (0, 1, 0)]}, "made twice"),
        ({"runs": [(0, 0)], "sends": [(1, 2, 1), (2, 0, 1)]}, "other ways"),
    ],
)
def test_it_says_what_it_can_not_go_on_from(deployed, says):
    problem = two_way()
    present = deployment(2, **deployed, serves={0: 0})
    assert verify(problem, present) == ()
    with pytest.raises(ValueError, match=says):
        Soda(running(problem, present), Options())


def test_macro_w_moves_what_runs_where_only_that_makes_room():
    """Two light joins stand on two hosts; a heavy one fits only if they share one."""
    names = ("b0", "b1", "b2")
    asked = problem_of(
        {
            "hosts": [
                {"name": h, "cpu": 10, "out_bps": 1000, "in_bps": 1000} for h in ("h0", "h1")
            ],
            "streams": [
                {"name": "a", "rate_bps": 1, "home": "h0"},
                *({"name": b, "rate_bps": 1, "home": "h1"} for b in names),
                *({"name": f"a{b}", "rate_bps": 1} for b in names),
            ],
            "operators": [
                {"name": f"a⋈{b}", "inputs": ["a", b], "output": f"a{b}", "cpu": cpu}
                for b, cpu in zip(names, (5, 5, 10), strict=True)
            ],
            "queries": [{"name": f"q{i}", "wants": f"a{b}"} for i, b in enumerate(names)],
        }
    )
    even = Options(weights=Weights(network=0.0, balance=1.0), work_limit=300)
    planner = Soda(asked, even)
    planner.submit([0, 1])
    assert sorted(h for h, _ in planner.deployment().runs.tolist()) == [0, 1]
    assert planner._all_placed([2], [2]) is not None
    assert planner._new_placed([2], [2]) is None
    assert planner.submit([2]).admitted == (2,)
    assert verify(asked, planner.deployment()) == ()
