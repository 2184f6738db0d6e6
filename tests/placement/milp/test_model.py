"""The model is right: its best is the programme's where that is exact, and its answers verify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.problems import TWO_WAY, problem_of

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.cost import Weights, cost_of, score
from thalweg.placement.ledger import Ledger
from thalweg.placement.milp.highs import solve
from thalweg.placement.milp.model import build
from thalweg.placement.milp.whole import MILP, whole
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.prices import Prices
from thalweg.placement.sqpr.reuse_rules import ReuseForecast
from thalweg.placement.sqpr.subset_dp import plan_query
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

TINY = Workload(hosts=3, base_streams=4, queries=1, ways=(3,), cpu=1e6, selectivity=(0.1, 0.9))
CROWDED = Workload(
    hosts=3, base_streams=6, queries=6, ways=(2, 3), cpu_share=0.6, host_bps=25 * MBPS
)
LEAN = Weights(balance=0.0)


@settings(max_examples=5)
@given(st.integers(0, 10_000))
def test_for_one_query_with_room_the_model_and_the_programme_agree(seed: int) -> None:
    problem = make_problem(TINY, seed)
    answer = solve(build(whole(problem), LEAN), nodes=10_000, gap=0.0, seconds=60.0)
    assert answer.proven
    hosts = problem.hosts
    flat = Prices(
        np.full(3, 1 / hosts.cpu.sum()), np.zeros(3), np.full(3, 1 / hosts.out_bps.sum()), None
    )
    plans = abstract_plans(problem, int(problem.queries.wanted[0]))
    piece = plan_query(Ledger(problem), plans, flat, ReuseForecast())
    assert piece is not None
    ledger = Ledger(problem)
    ledger.add(piece)
    ledger.serve(0, piece.host)
    best = MILP.plan(problem, Options(weights=LEAN, work_limit=10_000)).deployment
    one, two = (score(problem, cost_of(problem, d), LEAN) for d in (best, ledger.deployment()))
    assert one == pytest.approx(two, abs=1e-6)


@settings(max_examples=4)
@given(st.integers(0, 10_000))
def test_the_whole_is_verified_and_admits_no_fewer_than_query_by_query(seed: int) -> None:
    problem = make_problem(CROWDED, seed)
    outcome = MILP.plan(problem, Options(work_limit=1000))
    assert verify(problem, outcome.deployment) == ()
    planner = Sqpr(problem)
    for query in range(len(problem.queries)):
        planner.submit([query])
    if "the best there is" in outcome.notes[0]:
        assert outcome.deployment.admitted >= planner.deployment().admitted
    assert len(outcome.refusals) == len(problem.queries) - outcome.deployment.admitted


def test_a_stream_cannot_feed_itself() -> None:
    """The only copy of a is on a host that can't send: two others might pretend to have it."""
    hosts = [h | {"out_bps": 0 if h["name"] == "h0" else 100} for h in TWO_WAY["hosts"]]
    operators = [TWO_WAY["operators"][0] | {"pinned": "h2"}]
    problem = problem_of(TWO_WAY | {"hosts": hosts, "operators": operators})
    for hops in (1, 2, 3):
        answer = solve(build(whole(problem, hops), LEAN), nodes=1000, gap=0.0, seconds=60.0)
        assert answer.proven
        assert answer.values is not None
        assert sum(answer.values) == 0


def test_a_relay_is_used_where_the_source_cannot_send_twice() -> None:
    """a can leave its home once and is needed at two pinned operators elsewhere."""
    document = {
        "hosts": [
            {"name": "h0", "cpu": 0, "out_bps": 10, "in_bps": 0},
            {"name": "h1", "cpu": 1, "out_bps": 99, "in_bps": 99},
            {"name": "h2", "cpu": 1, "out_bps": 99, "in_bps": 99},
        ],
        "streams": [
            {"name": "a", "rate_bps": 10, "home": "h0"},
            {"name": "x", "rate_bps": 1},
            {"name": "y", "rate_bps": 1},
        ],
        "operators": [
            {"name": "ox", "inputs": ["a"], "output": "x", "cpu": 1, "pinned": "h1"},
            {"name": "oy", "inputs": ["a"], "output": "y", "cpu": 1, "pinned": "h2"},
        ],
        "queries": [{"name": "qx", "wants": "x"}, {"name": "qy", "wants": "y"}],
    }
    problem = problem_of(document)
    outcome = MILP.plan(problem, Options())
    assert outcome.deployment.admitted == 2
    assert len(outcome.deployment.sends) == 2
    assert verify(problem, outcome.deployment) == ()


def test_balance_spreads_the_load() -> None:
    problem = make_problem(replace(CROWDED, cpu_share=3.0, host_bps=1000 * MBPS), 3)
    even = MILP.plan(problem, Options(weights=Weights(network=0, cpu=0, balance=1.0)))
    lean = MILP.plan(problem, Options(weights=Weights(network=10, cpu=1, balance=0.0)))
    assert verify(problem, even.deployment) == verify(problem, lean.deployment) == ()
    busiest = [cost_of(problem, o.deployment).busiest for o in (even, lean)]
    assert busiest[0] < busiest[1]


def test_what_the_model_cannot_do_is_refused() -> None:
    big = make_problem(Workload(cpu=1.0), 1)
    with pytest.raises(ValueError, match="too many for one model"):
        MILP.plan(big, Options())
    bounded = TWO_WAY["queries"][0] | {"latency_bound_ms": 5}
    late = problem_of(TWO_WAY | {"queries": [bounded], "latency_ms": [[0] * 3] * 3})
    with pytest.raises(ValueError, match="no latency"):
        MILP.plan(late, Options())


def test_the_same_model_gets_the_same_answer() -> None:
    problem = make_problem(replace(CROWDED, queries=4), 11)
    one, two = (MILP.plan(problem, Options(work_limit=3)) for _ in range(2))
    assert one.deployment == two.deployment


def test_capacities_of_any_unit_are_kept() -> None:
    """Bits per second next to CPU: tolerances must not let a host take a little too much."""
    problem = make_problem(CROWDED, 5)
    hosts = replace(problem.hosts, cpu=problem.hosts.cpu * (1 - 1e-7))
    tight = Problem(hosts, problem.streams, problem.operators, problem.queries)
    assert verify(tight, MILP.plan(tight, Options()).deployment) == ()
