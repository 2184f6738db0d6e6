"""A query that finds no room is given some: others move, one by one or as the solver says."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.problems import problem_of

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import Weights
from thalweg.placement.milp.room import Limits, make_room
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.displacement import in_the_way, put_back, take_out
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.prices import prices
from thalweg.placement.sqpr.refusing import nearest
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

NARROW = Workload(hosts=8, base_streams=40, queries=90, host_bps=35 * MBPS, cpu_share=0.9)


def crossing() -> Problem:
    """The light query may run anywhere, the heavy one only at h0, where the light one sits."""
    return problem_of(
        {
            "hosts": [
                {"name": "h0", "cpu": 10, "out_bps": 100, "in_bps": 100},
                {"name": "h1", "cpu": 9, "out_bps": 100, "in_bps": 100},
            ],
            "streams": [
                {"name": "a", "rate_bps": 1, "home": "h0"},
                {"name": "light", "rate_bps": 1},
                {"name": "heavy", "rate_bps": 1},
            ],
            "operators": [
                {"name": "l", "inputs": ["a"], "output": "light", "cpu": 2},
                {"name": "h", "inputs": ["a"], "output": "heavy", "cpu": 9.5},
            ],
            "queries": [{"name": "q0", "wants": "light"}, {"name": "q1", "wants": "heavy"}],
        }
    )


def test_what_is_in_the_way_moves() -> None:
    planner = Sqpr(crossing())
    planner.submit([0])
    assert planner.deployment().runs.tolist() == [[0, 0]]
    decision = planner.submit([1])
    assert decision.how == "swap"
    assert planner.deployment().runs.tolist() == [[0, 1], [1, 0]]
    assert [(c.host, c.starts, c.stops) for c in decision.changes] == [
        (0, (1,), (0,)),
        (1, (0,), ()),
    ]
    assert verify(crossing(), planner.deployment()) == ()


def test_without_work_nothing_moves() -> None:
    planner = Sqpr(crossing(), Options(work_limit=0))
    planner.submit([0])
    assert planner.submit([1]).how == "refused"


@settings(max_examples=5)
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_what_is_taken_out_can_be_put_back_as_it_was(seed: int, pick: int) -> None:
    problem = make_problem(NARROW, seed)
    planner = Sqpr(problem, Options(work_limit=0))
    planner.submit(range(20))
    ledger, before = planner.ledger, planner.deployment()
    cpu, out, into = ledger.cpu_left.copy(), ledger.out_left.copy(), ledger.in_left.copy()
    places = sorted(ledger.results)
    chosen = tuple(dict.fromkeys((places[pick % len(places)], places[-1])))
    taken = take_out(ledger, chosen)
    without = planner.deployment()
    assert without.admitted < before.admitted
    assert verify(problem, without) == ()
    put_back(ledger, taken)
    assert planner.deployment() == before
    np.testing.assert_allclose(ledger.cpu_left, cpu)
    np.testing.assert_allclose(ledger.out_left, out)
    np.testing.assert_allclose(ledger.in_left, into, atol=1e-3)


def test_the_solver_makes_room_or_leaves_all_as_it_was() -> None:
    """Whenever the programme refuses for want of bandwidth, the solver is asked by itself."""
    found: Counter[bool] = Counter()
    for seed in range(4):
        problem = make_problem(NARROW, seed)
        planner = Sqpr(problem, Options(work_limit=0))
        for query in range(len(problem.queries)):
            refusals = planner.submit([query]).refusals
            if not refusals or not refusals[0].resource.startswith("bandwidth"):
                continue
            answer = _ask_the_solver(planner, query)
            found[answer] += 1
            served = planner.deployment().serves
            assert (served[query] != NONE) == answer
            assert verify(problem, planner.deployment()) == ()
            if sum(found.values()) % 5 == 0:
                break
    assert found[True], "the neighbourhoods are drawn so badly that the solver never helps"
    assert found[False]


def _ask_the_solver(planner: Sqpr, query: int) -> bool:
    ledger = planner.ledger
    before = planner.deployment()
    plans = planner.placing.abstract(query)
    near = nearest(ledger, plans, prices(ledger, Weights()), planner.placing.forecast, NONE)
    assert near is not None
    others = in_the_way(ledger, shortages(ledger, near))
    answer = make_room(ledger, query, plans, near, others, Weights(), Limits(nodes=100))
    after = planner.deployment()
    kept = before.serves != NONE
    assert (after.serves[kept] != NONE).all(), "what was admitted is never dropped"
    helped = answer is not None and answer.values is not None
    if not helped:
        assert after == before
    return helped
