"""Whole problems by every strategy: verified, refused with reasons, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.problems import problem_of
from tests.placement.sand.problems import with_proxies, without_limits
from tests.placement.sand.test_deploying import TWO

from thalweg.placement.arrays import NONE
from thalweg.placement.network_use import bits_in_flight
from thalweg.placement.sand.strategies import EDGE, IN_NETWORK, OPTIMAL, PROXY, SAND
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options, Strategy
from thalweg.placement.verify import verify


@given(st.integers(0, 10_000), st.sampled_from(SAND), st.booleans())
def test_every_query_is_served_verified_or_refused(
    seed: int, strategy: Strategy, limited: bool
) -> None:
    problem = with_proxies(seed) if limited else without_limits(with_proxies(seed))
    outcome = strategy.plan(problem, Options())
    assert verify(problem, outcome.deployment) == ()
    refused = {r.query for r in outcome.refusals}
    served = set(np.flatnonzero(outcome.deployment.serves != NONE).tolist())
    assert refused | served == set(range(len(problem.queries)))
    assert not refused & served
    if not limited:
        assert {r.resource for r in outcome.refusals} <= {"latency"}


@given(st.integers(0, 10_000), st.sampled_from(SAND))
def test_planning_again_from_what_runs_changes_nothing(seed: int, strategy: Strategy) -> None:
    problem = without_limits(with_proxies(seed))
    first = strategy.plan(problem, Options()).deployment
    again = strategy.plan(problem.with_running(first), Options())
    assert again.deployment == first


@pytest.mark.parametrize("strategy", SAND, ids=lambda s: s.name)
def test_strategies_are_found_by_name(strategy: Strategy) -> None:
    assert find_strategy(strategy.name) is strategy


def test_what_is_saved_is_told() -> None:
    problem = problem_of(TWO)
    assert OPTIMAL.plan(problem, Options()).notes == (
        "0.23 bit in flight (33%), 0.7 bit with everything at the proxies",
    )
    assert bits_in_flight(problem, PROXY.plan(problem, Options()).deployment) == pytest.approx(0.7)


def test_a_host_that_is_too_small_is_named() -> None:
    document = {**TWO, "hosts": [{"name": f"h{i}", "cpu": 1} for i in range(4)]}
    document["operators"] = [{**TWO["operators"][0], "cpu": 3}]  # type: ignore[index]
    outcome = EDGE.plan(problem_of(document), Options())
    assert [(r.query, r.resource, r.host) for r in outcome.refusals] == [
        (0, "cpu", 0),
        (1, "cpu", 0),
    ]
    assert "h0 would need 3 of 1" in outcome.refusals[0].detail
    assert "sqpr looks for room" in outcome.refusals[0].detail


def test_a_bound_that_nothing_meets_refuses_that_query_alone() -> None:
    document = {**TWO, "queries": [{**TWO["queries"][0], "latency_bound_ms": 3}, TWO["queries"][1]]}  # type: ignore[index]
    outcome = IN_NETWORK.plan(problem_of(document), Options())
    (refusal,) = outcome.refusals
    assert (refusal.query, refusal.resource) == (0, "latency")
    assert "nothing meets the bound of 3 ms" in refusal.detail
    assert outcome.deployment.serves.tolist() == [NONE, 3]


def test_without_latencies_that_is_noted() -> None:
    document = {k: v for k, v in TWO.items() if k != "latency_ms"}
    outcome = EDGE.plan(problem_of(document), Options())
    assert verify(problem_of(document), outcome.deployment) == ()
    assert outcome.notes == (
        "no latencies are given: all hosts count as equally far from each other",
    )
