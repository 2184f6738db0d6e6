"""Synthetic problems with all that limits: links, latencies with bounds, proxies, pins."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem

SMALL = Workload(hosts=6, base_streams=20, queries=40, host_bps=60 * MBPS)


def networked_problem(seed: int) -> Problem:
    """Uneven hosts, and what else limits by chance: each of it is there in half of all problems."""
    problem = make_problem(SMALL, seed)
    rng = np.random.default_rng([seed, 99])
    hosts, queries, operators = problem.hosts, problem.queries, problem.operators
    count = len(hosts)
    hosts = replace(
        hosts,
        cpu=floats(hosts.cpu * rng.uniform(0.3, 1.7, count)),
        out_bps=floats(hosts.out_bps * rng.uniform(0.3, 1.7, count)),
        in_bps=floats(hosts.in_bps * rng.uniform(0.3, 1.7, count)),
    )
    if rng.random() < 0.5:
        hosts = replace(hosts, link_bps=rng.uniform(5 * MBPS, 30 * MBPS, (count, count)))
    if rng.random() < 0.5:
        latency = rng.uniform(1.0, 50.0, (count, count))
        np.fill_diagonal(latency, 0.0)
        hosts = replace(hosts, latency_ms=latency)
        bound = np.where(rng.random(len(queries)) < 0.5, rng.uniform(5, 120, len(queries)), inf)
        queries = replace(queries, latency_bound_ms=floats(bound))
    if rng.random() < 0.5:
        proxy = np.where(rng.random(len(queries)) < 0.5, rng.integers(0, count, len(queries)), NONE)
        queries = replace(queries, proxy=ints(proxy))
    if rng.random() < 0.5:
        pins = rng.integers(0, count, len(operators))
        operators = replace(
            operators, pinned=ints(np.where(rng.random(len(operators)) < 0.2, pins, NONE))
        )
    return Problem(hosts, problem.streams, operators, queries)
