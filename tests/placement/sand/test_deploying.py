"""Trees become one deployment that runs, shares what is equal, and is late for nobody."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.problems import problem_of
from tests.placement.sand.problems import with_proxies, without_limits

from thalweg.placement.arrays import NONE, ints
from thalweg.placement.explain import Plans
from thalweg.placement.network_use import bits_in_flight, query_use
from thalweg.placement.problem import Problem
from thalweg.placement.sand.deploying import deploy
from thalweg.placement.sand.query_trees import Placed, query_tree, running_tree, ways_of
from thalweg.placement.verify import verify

TWO = {
    "hosts": [{"name": f"h{i}"} for i in range(4)],
    "latency_ms": [[0, 5, 5, 5], [5, 0, 5, 5], [5, 5, 0, 20], [5, 5, 20, 0]],
    "streams": [
        {"name": "a", "rate_bps": 40, "home": "h0"},
        {"name": "b", "rate_bps": 30, "home": "h1"},
        {"name": "ab", "rate_bps": 8},
    ],
    "operators": [{"name": "a⋈b", "inputs": ["a", "b"], "output": "ab"}],
    "queries": [
        {"name": "q0", "wants": "ab", "proxy": "h2"},
        {"name": "q1", "wants": "ab", "proxy": "h3"},
    ],
}


def placed(problem: Problem, query: int, *operators: int) -> Placed:
    of = query_tree(problem, query)
    at = of.tree.pinned.copy()
    at[at == NONE] = operators
    return Placed(of, ints(at))


def test_what_two_trees_have_in_common_runs_once() -> None:
    problem = problem_of(TWO)
    both = deploy(problem, [placed(problem, 0, 0), placed(problem, 1, 0)])
    assert both.runs.tolist() == [[0, 0]]
    assert both.sends.tolist() == [[0, 2, 2], [0, 3, 2], [1, 0, 1]]
    assert verify(problem, both) == ()


def test_a_stream_reaches_a_host_by_the_earliest_way_that_a_tree_has() -> None:
    """q0's proxy gets the join from h3, 25 ms on the way; q2 wants it there after 10 ms."""
    queries = [*TWO["queries"], {"name": "q2", "wants": "ab", "proxy": "h2"}]  # type: ignore[misc]
    problem = problem_of({**TWO, "queries": queries})
    both = deploy(problem, [placed(problem, 0, 3), placed(problem, 2, 0)])
    assert both.runs.tolist() == [[0, 0]]
    assert both.sends.tolist() == [[0, 2, 2], [1, 0, 1]]
    assert verify(problem, both) == ()


def test_an_operator_may_run_twice_where_trees_want_it_apart() -> None:
    problem = problem_of(TWO)
    both = deploy(problem, [placed(problem, 0, 2), placed(problem, 1, 3)])
    assert both.runs.tolist() == [[2, 0], [3, 0]]
    assert verify(problem, both) == ()


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_any_placement_of_any_trees_can_run_in_time(seed: int, kind: int) -> None:
    """Hosts drawn at random: the worst that a strategy could do."""
    problem = without_limits(with_proxies(seed))
    rng = np.random.default_rng([seed, kind])
    chosen = rng.permutation(len(problem.queries))[: 1 + 8 * kind].tolist()
    trees = []
    for query in chosen:
        of = query_tree(problem, query)
        at = rng.integers(0, len(problem.hosts), len(of.tree))
        trees.append(Placed(of, ints(np.where(of.tree.pinned == NONE, at, of.tree.pinned))))
    found = deploy(problem, trees)
    broken = [str(v) for v in verify(problem, found) if v.rule != "latency"]
    assert broken == []
    assert found.admitted == len(trees)
    latency = ways_of(problem.hosts).latency_ms
    plans = Plans(problem, found)
    single = 0.0
    for one in trees:
        plan = plans.of(one.of.query)
        assert plan is not None
        use = query_use(problem, plan)
        if use is not None:
            assert use.delay_ms <= one.of.tree.delay_ms(one.at, latency) + 1e-9
        single += one.of.tree.cost(one.at, latency) / 1000
    assert bits_in_flight(problem, found) <= single * (1 + 1e-9)


@given(st.integers(0, 10_000))
def test_a_deployed_tree_is_read_back_with_its_cost(seed: int) -> None:
    problem = without_limits(with_proxies(seed))
    rng = np.random.default_rng(seed)
    query = int(rng.integers(len(problem.queries)))
    of = query_tree(problem, query)
    hosts = rng.integers(0, len(problem.hosts), len(of.tree))
    at = ints(np.where(of.tree.pinned == NONE, hosts, of.tree.pinned))
    again = running_tree(Plans(problem, deploy(problem, [Placed(of, at)])), query)
    assert again is not None
    assert again.of.tree.names == of.tree.names
    assert again.at.tolist() == at.tolist()
    latency = ways_of(problem.hosts).latency_ms
    assert again.of.tree.cost(again.at, latency) == pytest.approx(of.tree.cost(at, latency))


def test_nothing_placed_is_nothing_deployed() -> None:
    assert deploy(problem_of(TWO), []).admitted == 0
