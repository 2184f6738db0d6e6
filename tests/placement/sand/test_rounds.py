"""Rounds of re-placement under rates and latencies that drift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from thalweg.placement.arrays import Ints, floats
from thalweg.placement.explain import Plans
from thalweg.placement.problem import Problem, ProblemError
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.query_trees import running_tree, ways_of
from thalweg.placement.sand.replacing import Patience
from thalweg.placement.sand.rounds import Round, next_round
from thalweg.placement.sand.strategies import OPTIMAL
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape, draw_tree, problem_of_trees, unlimited
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify


def best(tree: Tree, ways: Ways, options: Options) -> Ints:
    return optimal(tree, ways)


def start(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    places = rng.random((40, 2)) * 300
    latency = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    trees = [
        draw_tree(Shape(), 2, int(rng.integers(40)), rng.integers(0, 40, 4).tolist(), rng)
        for _ in range(6)
    ]
    problem, _ = problem_of_trees(unlimited(latency), trees)
    return problem.with_running(OPTIMAL.plan(problem, Options()).deployment)


def drifted(problem: Problem, rng: np.random.Generator) -> Problem:
    """Every rate and every way changes by up to a tenth."""
    count = len(problem.hosts)
    swing = rng.uniform(0.95, 1.05, (count, count))
    assert problem.hosts.latency_ms is not None
    hosts = replace(problem.hosts, latency_ms=problem.hosts.latency_ms * (swing + swing.T) / 2)
    rates = problem.streams.rate_bps * rng.uniform(0.9, 1.1, len(problem.streams))
    streams = replace(problem.streams, rate_bps=floats(rates))
    return Problem(hosts, streams, problem.operators, problem.queries, problem.running)


def rounds(seed: int, saving: float, count: int = 12) -> list[tuple[Problem, Round]]:
    rng = np.random.default_rng([seed, 1])
    problem, found = start(seed), []
    for _ in range(count):
        problem = drifted(problem, rng)
        done = next_round(problem, best, Patience(saving))
        found.append((problem, done))
        problem = problem.with_running(done.deployment)
    return found


@pytest.mark.parametrize("saving", [0.0, 0.1, 0.3])
def test_what_stays_is_never_much_worse_than_what_could_be(saving: float) -> None:
    for seed in range(3):
        for problem, done in rounds(seed, saving):
            assert verify(problem, done.deployment) == ()
            assert done.refusals == ()
            latency = ways_of(problem.hosts).latency_ms
            plans = Plans(problem, done.deployment)
            for query in range(len(problem.queries)):
                runs = running_tree(plans, query)
                assert runs is not None
                tree = runs.of.tree
                least = tree.cost(optimal(tree, ways_of(problem.hosts)), latency)
                assert tree.cost(runs.at, latency) * (1 - saving) <= least * (1 + 1e-9)


def test_patience_saves_migrations() -> None:
    moves = [
        sum(len(done.migrations) for seed in range(3) for _, done in rounds(seed, saving))
        for saving in (0.0, 0.1, 0.3)
    ]
    assert moves[0] > 3 * moves[1] >= 3 * moves[2]
    assert moves[0] > 20


def test_migrations_are_of_the_queries_that_moved() -> None:
    for problem, done in rounds(1, 0.02):
        assert set(done.moved) | set(done.stayed) == set(range(len(problem.queries)))
        assert (len(done.migrations) > 0) == (len(done.moved) > 0)


def test_a_round_needs_something_that_runs() -> None:
    with pytest.raises(ProblemError, match=r"\$\.running: .* give a deployment"):
        next_round(start(0).with_running(None), best)
