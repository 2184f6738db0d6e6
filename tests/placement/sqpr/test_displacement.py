"""A query that finds no room is given some: another result moves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.problems import problem_of

from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.displacement import put_back, take_out
from thalweg.placement.sqpr.planner import Sqpr
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
