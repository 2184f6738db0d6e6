"""What a deployment costs on each objective of SQPR (III.2), and how objectives are weighed.

The weights are those of section IV-A, with its slips put right: O₃ is scaled by the sum of all CPU
(the text divides by the links' bandwidth), and O₄ is the utilisation of the busiest host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thalweg.placement.arrays import Floats, Ints, floats
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class Cost:
    admitted: int  # O₁
    network_bps: float  # O₂: what hosts send each other
    cpu: float  # O₃
    busiest: float  # O₄: the largest share of its CPU that a host uses


@dataclass(frozen=True, slots=True)
class Load:
    """What each host uses of each resource."""

    cpu: Floats
    out_bps: Floats
    in_bps: Floats


@dataclass(frozen=True, slots=True)
class Weights:
    """λ₁ … λ₄ over objectives that are scaled to the system's capacity.

    O₁ counts queries, O₂ is scaled by Σβ, O₃ by Σζ, and O₄ is a share already.
    """

    admitted: float = 1e3
    network: float = 1.0
    cpu: float = 1.0
    balance: float = 1.0

    def __post_init__(self) -> None:
        if not all(w >= 0 for w in (self.admitted, self.network, self.cpu, self.balance)):
            raise ValueError("a weight can't be negative")


def load_of(problem: Problem, deployment: Deployment) -> Load:
    """A result is handed out once per stream and host, however many queries want it (II-B)."""
    hosts = len(problem.hosts)
    rate = problem.streams.rate_bps
    cpu = _sums(deployment.runs[:, 0], problem.operators.cpu[deployment.runs[:, 1]], hosts)
    source, target, sent = deployment.sends.T
    out_bps = _sums(source, rate[sent], hosts)
    in_bps = _sums(target, rate[sent], hosts)
    if deployment.wants is not None:
        in_bps = _sums(deployment.wants[:, 0], rate[deployment.wants[:, 1]], hosts)
    served = deployment.serves >= 0
    pairs = np.stack([deployment.serves[served], problem.queries.wanted[served]], axis=1)
    at, stream = np.unique(pairs, axis=0).T
    return Load(cpu, out_bps + _sums(at, rate[stream], hosts), in_bps)


def cost_of(problem: Problem, deployment: Deployment) -> Cost:
    load = load_of(problem, deployment)
    share = shares(load.cpu, problem.hosts.cpu)
    return Cost(
        admitted=deployment.admitted,
        network_bps=float(load.in_bps.sum()),
        cpu=float(load.cpu.sum()),
        busiest=float(share.max(initial=0.0)),
    )


def score(problem: Problem, cost: Cost, weights: Weights | None = None) -> float:
    """The weighted sum (III.3): more is better."""
    weights = weights or Weights()
    return (
        weights.admitted * cost.admitted
        - weights.network * _share(cost.network_bps, yardsticks(problem).bps)
        - weights.cpu * _share(cost.cpu, yardsticks(problem).cpu)
        - weights.balance * cost.busiest
    )


class Yardsticks(NamedTuple):
    cpu: float
    bps: float


def yardsticks(problem: Problem) -> Yardsticks:
    """What CPU and traffic are measured by: the capacity of all hosts. Where that is unlimited,
    what all operators and streams would use: to be without a limit is not to cost nothing."""
    return Yardsticks(
        _limited(float(problem.hosts.cpu.sum()), float(problem.operators.cpu.sum())),
        _limited(float(problem.hosts.out_bps.sum()), float(problem.streams.rate_bps.sum())),
    )


def _limited(capacity: float, demand: float) -> float:
    return capacity if np.isfinite(capacity) else demand or 1.0


def shares(used: Floats, capacity: Floats) -> Floats:
    """Used of capacity; of nothing at all, whatever is used is infinitely much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(used > 0, used / capacity, 0.0)
    return found


def _share(used: float, capacity: float) -> float:
    return float(shares(np.array([used]), np.array([capacity]))[0])


def _sums(places: Ints, amounts: Floats, count: int) -> Floats:
    return floats(np.bincount(places, weights=amounts, minlength=count))
