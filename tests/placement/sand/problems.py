"""Problems of several queries that share streams, each with a proxy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.placement.networked import networked_problem

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.problem import Problem


def with_proxies(seed: int) -> Problem:
    problem = networked_problem(seed)
    rng = np.random.default_rng([seed, 7])
    count = len(problem.queries)
    drawn = rng.integers(0, len(problem.hosts), count)
    proxy = np.where(problem.queries.proxy == NONE, drawn, problem.queries.proxy)
    return Problem(
        problem.hosts,
        problem.streams,
        problem.operators,
        replace(problem.queries, proxy=ints(proxy)),
    )


def without_limits(problem: Problem) -> Problem:
    unlimited = floats(np.full(len(problem.hosts), np.inf))
    hosts = replace(
        problem.hosts, cpu=unlimited, out_bps=unlimited, in_bps=unlimited, link_bps=None
    )
    return Problem(hosts, problem.streams, problem.operators, problem.queries, problem.running)
