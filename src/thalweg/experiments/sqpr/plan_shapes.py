"""What plans look like: which join orders were chosen, and what they cost later on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thalweg.experiments.sqpr.filling import cpu_share
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options


@dataclass(frozen=True, slots=True)
class Shape:
    admitted: int
    early_cpu: float  # share of all CPU in use after the early queries
    bushy: float  # of the joins of four: those of two joins of two
    chained: float  # those of a join of three and a base stream


def shape_after(problem: Problem, strategy: str, options: Options, rule: str, look: int) -> Shape:
    """Fill the system under a rule of reuse, and look at the plans after so many queries."""
    make = find_strategy(strategy).online
    assert make is not None
    planner = make(problem, replace(options, reuse=rule))
    early: Deployment | None = None
    admitted = 0
    for query in range(len(problem.queries)):
        if query == look:
            early = planner.deployment()
        admitted += len(planner.submit([query]).admitted)
    assert early is not None
    return Shape(admitted, cpu_share(problem, early), *_shapes(problem, early))


def _shapes(problem: Problem, deployed: Deployment) -> tuple[float, float]:
    """Of the operators that make joins of four: how many join two pairs, how many a triple."""
    sizes = np.array([name.count("⋈") + 1 for name in problem.streams.names])
    kinds = [
        tuple(sorted(sizes[problem.operators.inputs[o]].tolist()))
        for o in deployed.runs[:, 1].tolist()
    ]
    fours = [kind for kind in kinds if sum(kind) == 4 and len(kind) == 2]
    if not fours:
        return 0.0, 0.0
    return fours.count((2, 2)) / len(fours), fours.count((1, 3)) / len(fours)
