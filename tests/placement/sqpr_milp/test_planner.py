"""Algorithm 1 as printed: what is admitted stays, only S(q) is replanned, limits are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights, cost_of, score
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.milp.whole import MILP
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.sqpr_milp import SQPR_MILP, SqprMilp
from thalweg.placement.sqpr_milp.planner import GAP
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

CROWDED = Workload(
    hosts=3, base_streams=6, queries=8, ways=(2, 3), cpu_share=0.6, host_bps=30 * MBPS
)


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.booleans())
def test_only_streams_that_the_query_touches_move_and_nobody_is_dropped(
    seed: int, warm: bool
) -> None:
    problem = make_problem(CROWDED, seed)
    planner = SqprMilp(problem, Options(work_limit=1000), warm=warm)
    before = planner.deployment()
    for query in range(len(problem.queries)):
        decision = planner.submit([query])
        after = planner.deployment()
        assert verify(problem, after) == ()
        kept = before.serves != NONE
        assert (after.serves[kept] != NONE).all()
        assert (after.serves[query] != NONE) == bool(decision.admitted)
        inside = set(abstract_plans(problem, int(problem.queries.wanted[query])).streams)
        assert outside(problem, before, inside) == outside(problem, after, inside)
        before = after


def outside(problem: Problem, deployed: Deployment, inside: set[int]) -> set[tuple[int, ...]]:
    """Rows that Algorithm 1 has to leave alone (line 4)."""
    output = problem.operators.output
    runs = {tuple(r) for r in deployed.runs.tolist() if int(output[r[1]]) not in inside}
    sends = {tuple(s) for s in deployed.sends.tolist() if s[2] not in inside}
    return runs | sends


def shared_pair() -> Problem:
    """ab runs at h0, and no other host can run it; abc only fits where ab is, so ab has to move."""
    document = {
        "hosts": [
            {"name": "h0", "cpu": 10, "out_bps": 100, "in_bps": 0},
            {"name": "h1", "cpu": 20, "out_bps": 100, "in_bps": 100},
        ],
        "streams": [
            {"name": "a", "rate_bps": 10, "home": "h0"},
            {"name": "b", "rate_bps": 10, "home": "h0"},
            {"name": "c", "rate_bps": 10, "home": "h1"},
            {"name": "ab", "rate_bps": 90},
            {"name": "abc", "rate_bps": 1},
        ],
        "operators": [
            {"name": "a⋈b", "inputs": ["a", "b"], "output": "ab", "cpu": 10},
            {"name": "ab⋈c", "inputs": ["ab", "c"], "output": "abc", "cpu": 10},
        ],
        "queries": [{"name": "q0", "wants": "ab"}, {"name": "q1", "wants": "abc"}],
    }
    return problem_of(document)


def test_what_runs_in_s_of_q_is_planned_again_where_a_programme_finds_no_room() -> None:
    """ab is served from h0, which can't send it as well; the solver makes it at h1 instead."""
    problem = shared_pair()
    running = deployment(2, runs=[(0, 0)], serves={0: 0})
    asked = problem.with_running(running)
    assert Sqpr(asked, Options(work_limit=0)).submit([1]).admitted == ()
    planner = SqprMilp(asked)
    assert planner.submit([1]).admitted == (1,)
    assert planner.deployment().runs.tolist() == [[1, 0], [1, 1]]
    assert planner.deployment().serves.tolist() == [1, 1]
    assert verify(problem, planner.deployment()) == ()


def test_a_refusal_says_whether_it_is_proven() -> None:
    hosts = [h | {"cpu": 6} for h in TWO_WAY["hosts"]]
    decision = SqprMilp(problem_of(TWO_WAY | {"hosts": hosts})).submit([0])
    assert "can be planned so that it fits" in decision.refusals[0].detail
    assert not decision.clock


def test_a_batch_is_one_model_that_admits_as_many_as_fit() -> None:
    """In order of arrival, a large query may take what two small ones would have shared."""
    problem = make_problem(replace(CROWDED, queries=6), 3)
    batched = SQPR_MILP.plan(problem, Options(work_limit=10_000, batch=6))
    assert verify(problem, batched.deployment) == ()
    single = SQPR_MILP.plan(problem, Options(work_limit=10_000))
    assert batched.deployment.admitted >= single.deployment.admitted


def test_the_solver_alone_finds_the_plan_of_a_query_that_fits() -> None:
    problem = make_problem(replace(CROWDED, queries=1, cpu_share=3.0), 1)
    assert SqprMilp(problem, warm=False).submit([0]).admitted == (0,)


def test_links_with_limits_are_kept() -> None:
    problem = make_problem(replace(CROWDED, queries=5, cpu=60.0), 2)
    count = len(problem.hosts)
    hosts = replace(problem.hosts, link_bps=np.full((count, count), 12 * MBPS))
    tight = Problem(hosts, problem.streams, problem.operators, problem.queries)
    outcome = SQPR_MILP.plan(tight, Options(work_limit=200))
    assert verify(tight, outcome.deployment) == ()
    assert outcome.deployment.admitted > 0


def test_bounds_on_latency_are_refused_rather_than_ignored() -> None:
    bounded = TWO_WAY["queries"][0] | {"latency_bound_ms": 5}
    late = problem_of(TWO_WAY | {"queries": [bounded], "latency_ms": [[0] * 3] * 3})
    with pytest.raises(ValueError, match="no latency"):
        SqprMilp(late)


def test_a_batch_is_planned_as_well_as_its_gap_says_not_just_admitted() -> None:
    """The objective counts queries by the thousand: a share of that would let any plan pass."""
    plenty = Workload(hosts=3, base_streams=6, queries=5, ways=(2, 3), cpu_share=3.0)
    problem = make_problem(plenty, 3)
    planner = SqprMilp(problem, Options(work_limit=10_000), warm=False)
    planner.submit(range(5))
    best = MILP.plan(problem, Options(work_limit=10_000)).deployment
    found = [cost_of(problem, d) for d in (planner.deployment(), best)]
    assert [cost.admitted for cost in found] == [5, 5]
    ours, least = (-score(problem, cost) + 5 * Weights().admitted for cost in found)
    assert ours <= least + GAP
