"""The abstract plans of a query: S(q) and O(q) of SQPR (section IV-A).

S(q) are the streams that can appear in a plan of q, O(q) the operators. Both come in an order in
which everything follows what it is made from, so that one pass computes a cost over all plans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class AbstractPlans:
    wanted: int
    streams: tuple[int, ...]  # S(q), inputs before outputs
    makers: dict[int, tuple[int, ...]]  # stream of S(q) -> its operators, none for a base stream
    inputs: dict[int, tuple[int, ...]]  # operator of O(q) -> S_o
    bases: dict[int, frozenset[int]]  # stream of S(q) -> the base streams that it is made of

    @property
    def operators(self) -> tuple[int, ...]:
        return tuple(self.inputs)


def abstract_plans(problem: Problem, wanted: int) -> AbstractPlans:
    makers: dict[int, tuple[int, ...]] = {}
    inputs: dict[int, tuple[int, ...]] = {}
    stack = [wanted]
    while stack:
        stream = stack.pop()
        if stream in makers:
            continue
        makers[stream] = tuple(problem.makers[stream].tolist())
        for operator in makers[stream]:
            inputs[operator] = tuple(problem.operators.inputs[operator].tolist())
            stack += inputs[operator]
    depth = {s: int(problem.level[list(ops)].max()) + 1 if ops else 0 for s, ops in makers.items()}
    order = sorted(makers, key=lambda s: (depth[s], s))
    ordered = {o: inputs[o] for s in order for o in makers[s]}
    bases: dict[int, frozenset[int]] = {}
    for stream in order:
        below = (bases[i] for o in makers[stream] for i in inputs[o])
        bases[stream] = frozenset().union(*below) or frozenset([stream])
    return AbstractPlans(wanted, tuple(order), makers, ordered, bases)


class AggregateHost:
    """All hosts as one that has every base stream and no network (SQPR, V-A).

    Its CPU need per query is the least that any deployment needs in the same situation, so that it
    calibrates workloads and, filled in order of arrival, is the source's "optimistic bound".
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.has = problem.streams.home != NONE

    def need(self, wanted: int) -> tuple[float, tuple[int, ...]]:
        """The CPU that this stream still needs, and the operators; both nothing if it is there."""
        if self.has[wanted]:
            return 0.0, ()
        plans = abstract_plans(self.problem, wanted)
        gamma: Floats = self.problem.operators.cpu
        cost: dict[int, float] = {}
        chosen: dict[int, int] = {}
        for stream in plans.streams:
            if self.has[stream]:
                cost[stream] = 0.0
                continue
            options = [
                (float(gamma[o]) + sum(cost[i] for i in plans.inputs[o]), o)
                for o in plans.makers[stream]
            ]
            cost[stream], chosen[stream] = min(options)
        needed: dict[int, None] = {}
        stack = [wanted]
        while stack:
            stream = stack.pop()
            if stream in chosen and chosen[stream] not in needed:
                needed[chosen[stream]] = None
                stack += plans.inputs[chosen[stream]]
        return float(np.sum(gamma[list(needed)])), tuple(needed)

    def run(self, operators: tuple[int, ...]) -> None:
        self.has[self.problem.operators.output[list(operators)]] = True


def cpu_with_full_reuse(problem: Problem) -> float:
    """The CPU that all queries need together, each reusing what earlier ones made."""
    host = AggregateHost(problem)
    total = 0.0
    for wanted in problem.queries.wanted.tolist():
        cpu, operators = host.need(wanted)
        host.run(operators)
        total += cpu
    return total
