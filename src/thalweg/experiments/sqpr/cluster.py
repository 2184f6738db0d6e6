"""The cluster of SQPR's section V-B: 15 hosts, 10 Mbps, 300 base streams of 10 kbps.

A host supports 15 joins. SODA is bound to a structure that the user gives: here it is drawn, as the
operators that could make a stream are listed in an order of chance.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import floats, ints, ragged
from thalweg.placement.problem import Operators, Problem
from thalweg.placement.sqpr.workload import MBPS, Workload, make_problem

STREAM_BPS = 10e3
ROUNDING = 1 + 1e-9  # fifteen joins must fit, whatever their sum's last digit


def cluster(
    hosts: int, base_streams: int, queries: int, joins_per_host: int, host_mbps: float
) -> Workload:
    join_cpu = 2 * STREAM_BPS / MBPS  # two base streams, at the workload's cost of an operator
    return Workload(
        hosts=hosts,
        base_streams=base_streams,
        rate_bps=STREAM_BPS,
        queries=queries,
        ways=(2, 3),
        host_bps=host_mbps * MBPS,
        cpu=joins_per_host * join_cpu * ROUNDING,
    )


def cluster_problem(workload: Workload, seed: int) -> Problem:
    problem = make_problem(workload, seed)
    old = problem.operators
    order = np.random.default_rng([seed, 2]).permutation(len(old)).tolist()
    operators = Operators(
        tuple(old.names[o] for o in order),
        ragged(old.inputs[o].tolist() for o in order),
        ints(old.output[order]),
        floats(old.cpu[order]),
        floats(old.state_bytes[order]),
        ints(old.pinned[order]),
    )
    return Problem(problem.hosts, problem.streams, operators, problem.queries)
