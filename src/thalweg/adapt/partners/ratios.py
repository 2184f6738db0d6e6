"""PR, PPR and CPR: how much longer a query takes than it must (COSMOS 6.1, equations 6.1 to 6.5).

A path is what the tuples of one stream pass on their way to a query's result: operators at nodes,
and hops between nodes. PR is the delay over the inherent processing time, and PR_max over all
queries is what the balancer keeps small.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a path: t', its selectivity on tuples, and the node that runs it."""

    node: str
    time_us: float
    selectivity: float = 1.0

    def __post_init__(self) -> None:
        if self.time_us < 0 or self.selectivity < 0:
            raise ValueError("an operator's time and selectivity can't be negative")


Slowdown = Callable[[float], float]  # f(ρ)


def mm1(load: float) -> float:
    """g(ρ) of an M/M/1 queue; without bound where a node is overloaded."""
    return 1 / (1 - load) if load < 1 else inf


def times_us(path: Sequence[Step]) -> list[float]:
    """t_j: of a tuple that reaches the result, so a selectivity below 1 counts as 1."""
    found, tuples = [], 1.0
    for step in path:
        found.append(step.time_us * tuples)
        tuples *= max(step.selectivity, 1.0)
    return found


def inherent_us(path: Sequence[Step]) -> float:
    """p (6.1): the processing time alone."""
    return sum(times_us(path))


def hops(path: Sequence[Step]) -> int:
    """m: how often a tuple changes its node on the way."""
    return sum(a.node != b.node for a, b in itertools.pairwise(path))


def ppr(path: Sequence[Step], loads: Mapping[str, float], slowdown: Slowdown = mm1) -> float:
    """Processing performance ratio (6.4)."""
    times = times_us(path)
    delayed = sum(slowdown(loads[s.node]) * t for s, t in zip(path, times, strict=True))
    return _over(delayed, sum(times))


def cpr(path: Sequence[Step], hop_us: float, transfers: int | None = None) -> float:
    """Communication performance ratio (6.5); `transfers` where the stream starts elsewhere too."""
    return _over(hop_us * (hops(path) if transfers is None else transfers), inherent_us(path))


def pr(
    path: Sequence[Step], loads: Mapping[str, float], hop_us: float, slowdown: Slowdown = mm1
) -> float:
    """Performance ratio (6.3), as the model has it."""
    return ppr(path, loads, slowdown) + cpr(path, hop_us)


def measured_pr(delay_us: float, processing_us: float) -> float:
    """Of one result: what it took over what it had to take."""
    return _over(delay_us, processing_us)


def worst(ratios: Iterable[float]) -> float:
    """PR of a query over its streams, and PR_max over all queries; 1 where there is no result."""
    return max(ratios, default=1.0)


def _over(value: float, inherent: float) -> float:
    if inherent <= 0:
        raise ValueError("a path without processing time has no ratio")
    return value / inherent
