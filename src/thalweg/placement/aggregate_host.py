"""The aggregate host in order of arrival: SQPR's "optimistic bound" (section V-A).

All hosts become one, with their CPU together, all base streams and no network. Each query takes the
plan that needs the least CPU beyond what already runs, and gets in if that is free. It is a
reference, not a bound: it never looks back, so a planner that refuses a costly query early may
admit more (`lp_bound` says what nobody can beat).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from thalweg.placement.abstract import AggregateHost
from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.strategy import Decision, Options, Outcome, Refusal, Strategy


def aggregated(problem: Problem) -> Problem:
    """The same demands on one host that has everything."""
    streams, operators, queries = problem.streams, problem.operators, problem.queries
    nowhere = np.full(len(operators), NONE)
    return Problem(
        Hosts(("all hosts",), floats([problem.hosts.cpu.sum()]), floats([inf]), floats([inf])),
        replace(streams, home=ints(np.where(streams.home == NONE, NONE, 0))),
        replace(operators, pinned=ints(nowhere)),
        replace(
            queries,
            proxy=ints(np.full(len(queries), NONE)),
            latency_bound_ms=floats(np.full(len(queries), inf)),
        ),
    )


class InOrderOfArrival:
    """Fills the aggregate host; what it deploys is for the `aggregated` problem."""

    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self._problem = problem
        self._host = AggregateHost(problem)
        self._free = float(problem.hosts.cpu.sum())
        self._running: list[int] = []
        self._served: list[int] = []

    def submit(self, queries: Sequence[int]) -> Decision:
        refusals = [self._refusal(query) for query in queries]
        admitted = tuple(q for q, refused in zip(queries, refusals, strict=True) if not refused)
        self._served += admitted
        return Decision(admitted, tuple(r for r in refusals if r))

    def _refusal(self, query: int) -> Refusal | None:
        cpu, operators = self._host.need(int(self._problem.queries.wanted[query]))
        if cpu > self._free:
            detail = f"its cheapest plan needs {cpu:.4g} CPU more, and {self._free:.4g} is free"
            return Refusal(query, "cpu", None, detail)
        self._host.run(operators)
        self._free -= cpu
        self._running += operators
        return None

    def deployment(self) -> Deployment:
        return deployment(
            len(self._problem.queries),
            runs=[(0, operator) for operator in self._running],
            serves=dict.fromkeys(self._served, 0),
        )


def _plan(problem: Problem, options: Options) -> Outcome:
    planner = InOrderOfArrival(problem, options)
    refusals = planner.submit(range(len(problem.queries))).refusals
    note = "a reference: one host with all CPU and all base streams, and no network"
    return Outcome(planner.deployment(), refusals, (note,), problem=aggregated(problem))


AGGREGATE_HOST = Strategy(
    "aggregate-host",
    "one host with everything, in order of arrival: a reference",
    _plan,
    InOrderOfArrival,
)
