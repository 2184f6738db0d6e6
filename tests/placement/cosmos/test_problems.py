"""Problems become query graphs, and mappings become deployments that stand every check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.networked import networked_problem
from tests.placement.problems import problem_of, two_way

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.checks import ProblemError
from thalweg.placement.cosmos.problems import pose
from thalweg.placement.cosmos.strategies import COSMOS, COSMOS_HIERARCHICAL, COSMOS_NAIVE
from thalweg.placement.cosmos.workload import Workload, as_problem, draw
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.strategy import Options, Strategy
from thalweg.placement.verify import verify, verify_shares


def wide_area(seed: int) -> Problem:
    """A generated problem with latencies, and without pins."""
    problem = networked_problem(seed)
    count = len(problem.hosts)
    rng = np.random.default_rng(seed)
    at = rng.random((count, 2)) * 50
    latency = np.linalg.norm(at[:, None] - at[None], axis=2)
    hosts = replace(problem.hosts, latency_ms=floats(latency), link_bps=None)
    free = replace(problem.operators, pinned=ints(np.full(len(problem.operators), NONE)))
    return Problem(hosts, problem.streams, free, problem.queries)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 300), st.sampled_from(COSMOS))
def test_whatever_the_strategy_its_deployment_is_sound(seed: int, strategy: Strategy) -> None:
    problem = wide_area(seed)
    outcome = strategy.plan(problem, Options())
    assert verify(problem, outcome.deployment) == ()
    refused = {r.query for r in outcome.refusals}
    served = set(np.flatnonzero(outcome.deployment.serves != NONE).tolist())
    assert refused | served == set(range(len(problem.queries)))
    assert not refused & served


def synthetic(queries: int = 600) -> Problem:
    drawn = draw(
        Workload(
            queries=queries, substreams=300, sources=4, providers=12, groups=4, wanted=(10, 20)
        ),
        1,
    )
    at = np.random.default_rng(1).random((16, 2)) * 40
    latency = np.linalg.norm(at[:, None] - at[None], axis=2)
    room = drawn.queries.weight.sum() / 12 * 1.5
    cpu = floats([room] * 12 + [0.0] * 4)
    much = floats(np.full(16, np.inf))
    hosts = Hosts(tuple(f"h{i}" for i in range(16)), cpu, much, much, None, floats(latency))
    return as_problem(drawn, hosts, ints(np.arange(12, 16)))


def test_the_synthetic_workload_as_a_problem_is_served_within_the_bound() -> None:
    problem = synthetic()
    outcome = COSMOS_HIERARCHICAL.plan(problem, Options())
    assert outcome.deployment.admitted == 600
    assert verify(problem, outcome.deployment) == ()
    assert verify_shares(problem, outcome.deployment, 0.1 + 1e-6) == ()
    assert outcome.deployment.runs[:, 0].max() < 12
    assert any("weighted edge cut" in note for note in outcome.notes)


def test_what_runs_is_redistributed_and_mostly_stays() -> None:
    problem = synthetic()
    before = COSMOS_HIERARCHICAL.plan(problem, Options()).deployment
    after = COSMOS_HIERARCHICAL.plan(problem.with_running(before), Options()).deployment
    stays = {tuple(r) for r in before.runs.tolist()} & {tuple(r) for r in after.runs.tolist()}
    assert len(stays) > 0.7 * len(before.runs)
    assert verify(problem, after) == ()


def test_naive_leaves_queries_at_their_proxies() -> None:
    problem = synthetic(50)
    found = COSMOS_NAIVE.plan(problem, Options()).deployment
    assert (found.serves == problem.queries.proxy).sum() >= 40  # those that there is CPU for
    hosts = dict(zip(found.runs[:, 1].tolist(), found.runs[:, 0].tolist(), strict=True))
    assert all(problem.queries.proxy[o] == h for o, h in hosts.items())


def test_queries_for_one_stream_are_one_vertex() -> None:
    problem = two_way()
    hosts = replace(problem.hosts, latency_ms=floats(np.ones((3, 3)) - np.eye(3)))
    posed = pose(Problem(hosts, problem.streams, problem.operators, problem.queries))
    assert posed.vertex.tolist() == [0, 0]
    assert posed.system.queries.weight.tolist() == [7.0]
    assert posed.system.queries.interests.toarray().tolist() == [[1, 1]]


def test_the_cheapest_plan_is_run() -> None:
    document = {
        "hosts": [{"name": "h", "cpu": 100}, {"name": "i", "cpu": 100}],
        "streams": [
            {"name": "a", "rate_bps": 1, "home": "h"},
            {"name": "b", "rate_bps": 1, "home": "i"},
            {"name": "m", "rate_bps": 1},
            {"name": "r", "rate_bps": 1},
        ],
        "operators": [
            {"name": "slow", "inputs": ["a", "b"], "output": "r", "cpu": 9},
            {"name": "first", "inputs": ["a"], "output": "m", "cpu": 2},
            {"name": "second", "inputs": ["m", "b"], "output": "r", "cpu": 3},
        ],
        "queries": [{"name": "q", "wants": "r", "proxy": "i"}],
        "latency_ms": [[0, 5], [5, 0]],
    }
    problem = problem_of(document)
    posed = pose(problem)
    assert posed.operators[0].tolist() == [1, 2]
    assert posed.system.queries.weight.tolist() == [5.0]
    outcome = COSMOS_HIERARCHICAL.plan(problem, Options())
    assert verify(problem, outcome.deployment) == ()
    assert outcome.deployment.serves.tolist() == [1]


@pytest.mark.parametrize("strategy", COSMOS, ids=lambda s: s.name)
def test_a_query_for_a_base_stream_runs_nothing(strategy: Strategy) -> None:
    document = {
        "hosts": [{"name": "h", "cpu": 1}, {"name": "i", "cpu": 1}],
        "streams": [{"name": "a", "rate_bps": 1, "home": "h"}],
        "operators": [],
        "queries": [{"name": "q", "wants": "a", "proxy": "i"}, {"name": "p", "wants": "a"}],
        "latency_ms": [[0, 5], [5, 0]],
    }
    problem = problem_of(document)
    outcome = strategy.plan(problem, Options())
    assert verify(problem, outcome.deployment) == ()
    assert outcome.deployment.admitted == 2


def test_without_latencies_there_is_nothing_to_go_by() -> None:
    with pytest.raises(ProblemError, match=r"\$\.latency_ms: COSMOS places by distance"):
        pose(two_way())


def test_pins_and_half_limited_hosts_are_refused_by_name() -> None:
    problem = wide_area(3)
    pinned = np.full(len(problem.operators), NONE, np.int32)
    pinned[4] = 0
    operators = replace(problem.operators, pinned=ints(pinned))
    with pytest.raises(ProblemError, match=r"operators\[4\]\.pinned"):
        pose(Problem(problem.hosts, problem.streams, operators, problem.queries))
    cpu = np.array(problem.hosts.cpu)
    cpu[2] = np.inf
    hosts = replace(problem.hosts, cpu=floats(cpu))
    with pytest.raises(ProblemError, match=r"hosts\[2\]\.cpu"):
        pose(Problem(hosts, problem.streams, problem.operators, problem.queries))


def test_who_finds_no_cpu_is_refused_with_the_host() -> None:
    problem = synthetic(60)
    poor = replace(problem.hosts, cpu=floats(problem.hosts.cpu / 3))
    tight = Problem(poor, problem.streams, problem.operators, problem.queries)
    outcome = COSMOS_HIERARCHICAL.plan(tight, Options())
    assert verify(tight, outcome.deployment) == ()
    assert 0 < outcome.deployment.admitted < 60
    assert all(r.resource == "cpu" and r.host is not None for r in outcome.refusals)
