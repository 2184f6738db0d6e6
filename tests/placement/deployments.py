"""Random problems with random deployments that are right by construction.

Each query's plan, hosts and relays are drawn by lot; then hosts and links get exactly the capacity
that the deployment uses, so that any damage has to show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Hosts, Problem, Queries
from thalweg.placement.sqpr.workload import Workload, make_problem

SMALL = Workload(hosts=5, base_streams=8, queries=6, ways=(2, 3), cpu=1.0)


@dataclass
class _Lot:
    problem: Problem
    rng: np.random.Generator
    holders: dict[int, list[int]] = field(default_factory=dict)
    runs: list[tuple[int, int]] = field(default_factory=list)
    sends: list[tuple[int, int, int]] = field(default_factory=list)

    def bring(self, stream: int, host: int) -> None:
        holders = self.holders.setdefault(stream, [])
        home = int(self.problem.streams.home[stream])
        if home != NONE and not holders:
            holders.append(home)
        if host in holders:
            return
        if not holders:
            maker = int(self.rng.choice(self.problem.makers[stream]))
            at = self.any_host()
            for needed in self.problem.operators.inputs[maker].tolist():
                self.bring(needed, at)
            self.runs.append((at, maker))
            holders.append(at)
        while host not in holders:
            relay = host if self.rng.random() < 0.6 else self.any_host()
            if relay not in holders:
                self.sends.append((int(self.rng.choice(holders)), relay, stream))
                holders.append(relay)

    def any_host(self) -> int:
        return int(self.rng.integers(len(self.problem.hosts)))


def random_case(seed: int) -> tuple[Problem, Deployment]:
    rng = np.random.default_rng(seed)
    problem = make_problem(SMALL, seed)
    lot = _Lot(problem, rng)
    serves: dict[int, int] = {}
    served: dict[int, int] = {}
    for query, wanted in enumerate(problem.queries.wanted.tolist()):
        if rng.random() < 0.2:
            continue
        serves[query] = served.setdefault(wanted, lot.any_host())
        lot.bring(wanted, serves[query])
    chosen = deployment(len(problem.queries), runs=lot.runs, sends=lot.sends, serves=serves)
    return _fitted(problem, chosen, rng), chosen


def _fitted(problem: Problem, chosen: Deployment, rng: np.random.Generator) -> Problem:
    count = len(problem.hosts)
    cpu, out_bps, in_bps = np.zeros(count), np.zeros(count), np.zeros(count)
    link = np.zeros((count, count))
    for h, o in chosen.runs:
        cpu[h] += problem.operators.cpu[o]
    for h, m, s in chosen.sends:
        rate = problem.streams.rate_bps[s]
        out_bps[h] += rate
        in_bps[m] += rate
        link[h, m] += rate
    results = {
        (h, s) for h, s in zip(chosen.serves, problem.queries.wanted, strict=True) if h != NONE
    }
    for h, s in results:
        out_bps[h] += problem.streams.rate_bps[s]
    latency = rng.uniform(1, 9, (count, count))
    hosts = Hosts(problem.hosts.names, cpu, out_bps, in_bps, link, latency)
    return Problem(hosts, problem.streams, problem.operators, problem.queries)


def with_queries(problem: Problem, queries: Queries) -> Problem:
    return Problem(problem.hosts, problem.streams, problem.operators, queries)
