"""Synthetic workloads: the simulated data centre of SQPR (section V-A).

Base streams are spread evenly over the hosts; queries are joins over base streams that are drawn
by Zipf's law. The source says neither what an operator costs (γ) nor what a host has (ζ): here CPU
is counted in Mbps of input that an operator reads, and all hosts together have a given share of
what all queries would need with full reuse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thalweg.placement.abstract import cpu_with_full_reuse
from thalweg.placement.arrays import Floats, floats
from thalweg.placement.building import ProblemBuilder, add_join_orders
from thalweg.placement.problem import Hosts, Problem

MBPS = 1e6


@dataclass(frozen=True, slots=True)
class Workload:
    hosts: int = 50
    base_streams: int = 500
    rate_bps: float = 10 * MBPS
    queries: int = 1000
    ways: tuple[int, ...] = (2, 3, 4)  # in equal parts
    selectivity: tuple[float, float] = (0.001, 0.005)
    zipf: float = 1.0  # 0 is uniform
    host_bps: float = 1000 * MBPS
    cpu_share: float = 0.75  # of the CPU that all queries need with full reuse
    cpu: float | None = None  # of each host; None: as cpu_share says

    def __post_init__(self) -> None:
        if min(self.ways) < 2 or max(self.ways) > self.base_streams:
            raise ValueError("a join has two base streams or more, and no more than there are")


@dataclass(frozen=True, slots=True)
class _Joins:
    """Rates and costs of one query's sub-joins; the linear cost model of section II-B."""

    bases: tuple[int, ...]
    builder: ProblemBuilder
    workload: Workload
    seed: int

    def key(self, part: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.bases[i] for i in part)

    def name(self, part: tuple[int, ...]) -> str:
        return "⋈".join(f"s{b}" for b in self.key(part))

    def rate_bps(self, part: tuple[int, ...]) -> float:
        """Drawn by what the stream is (its base set), whatever the query or the join order."""
        low, high = self.workload.selectivity
        bases = self.key(part)
        share = np.random.default_rng([self.seed, 1, *bases]).uniform(low, high)
        return float(share) * len(bases) * self.workload.rate_bps

    def operator(self, output: str, left: str, right: str) -> str:
        return f"{left} ⋈ {right}"

    def cpu(self, operator: str, input_bps: float) -> float:
        return input_bps / MBPS

    def joinable(self, left: tuple[int, ...], right: tuple[int, ...]) -> bool:
        return True


def make_problem(workload: Workload, seed: int) -> Problem:
    """The same workload and seed always make the same problem."""
    rng = np.random.default_rng([seed, 0])
    homes = rng.permutation(np.arange(workload.base_streams) % workload.hosts)
    builder = ProblemBuilder(_hosts(workload, 0.0))
    for i, home in enumerate(homes.tolist()):
        builder.stream((i,), f"s{i}", workload.rate_bps, home)
    ways = rng.permutation(np.resize(workload.ways, workload.queries))
    chance = _zipf(workload.base_streams, workload.zipf)
    for i, count in enumerate(ways.tolist()):
        drawn = rng.choice(workload.base_streams, size=count, replace=False, p=chance)
        bases = tuple(sorted(drawn.tolist()))
        model = _Joins(bases, builder, workload, seed)
        builder.query(f"q{i}", add_join_orders(builder, bases, model))
    problem = builder.build()
    cpu = workload.cpu
    if cpu is None:
        cpu = workload.cpu_share * cpu_with_full_reuse(problem) / workload.hosts
    return replace_hosts(problem, _hosts(workload, cpu))


def replace_hosts(problem: Problem, hosts: Hosts) -> Problem:
    return Problem(hosts, problem.streams, problem.operators, problem.queries, problem.running)


def _hosts(workload: Workload, cpu: float) -> Hosts:
    bandwidth = floats(np.full(workload.hosts, workload.host_bps))
    names = tuple(f"h{i}" for i in range(workload.hosts))
    return Hosts(names, floats(np.full(workload.hosts, cpu)), bandwidth, bandwidth)


def _zipf(count: int, exponent: float) -> Floats:
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return floats(weights / weights.sum())


QUICK = replace(Workload(), hosts=10, base_streams=50, queries=150)
