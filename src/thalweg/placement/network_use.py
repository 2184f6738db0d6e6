"""What a deployment takes of a wide-area network, and how long results take.

Rate × latency are the bits that are on their way at any time: the measure of SAND (3.3), in a unit
that one can imagine. It is told beside what streams would take straight to where they are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.deployment import Deployment
from thalweg.placement.explain import Kind, Node
from thalweg.placement.problem import Problem
from thalweg.placement.units import bits

_MS = 1e-3


@dataclass(frozen=True, slots=True)
class NetworkUse:
    bits: float  # in flight
    straight_bits: float  # if every base stream went straight to where the query is served
    delay_ms: float  # the longest way of a base stream through the plan
    straight_ms: float

    @property
    def saving(self) -> float:
        return 1 - self.bits / self.straight_bits if self.straight_bits else 0.0

    @property
    def stretch(self) -> float:
        if self.straight_ms:
            return self.delay_ms / self.straight_ms
        return 1.0 if self.delay_ms == 0 else inf


def bits_in_flight(problem: Problem, deployment: Deployment) -> float:
    """Over all sends; each stream counts once on each of its ways, however many queries use it.

    What is left to the overlay comes straight from the nearest host that has it.
    """
    latency = problem.hosts.latency_ms
    if latency is None:
        return 0.0
    rate = problem.streams.rate_bps
    source, target, sent = deployment.sends.T
    total = float((rate[sent] * latency[source, target]).sum())
    if deployment.wants is not None:
        has = _holders(problem, deployment)
        for host, stream in deployment.wants.tolist():
            total += float(rate[stream] * latency[has[stream], host].min())
    return total * _MS


def _holders(problem: Problem, deployment: Deployment) -> dict[int, list[int]]:
    """Of each stream, the hosts where it comes from or is made."""
    found: dict[int, list[int]] = {}
    for stream in np.flatnonzero(problem.streams.home != NONE).tolist():
        found.setdefault(stream, []).append(int(problem.streams.home[stream]))
    for host, operator in deployment.runs.tolist():
        found.setdefault(int(problem.operators.output[operator]), []).append(host)
    return found


def query_use(problem: Problem, plan: Node) -> NetworkUse | None:
    """Of one query's plan by itself; None where there are no latencies.

    What the overlay brings comes by the shortest way; others may want it too and share its ways.
    """
    latency = problem.hosts.latency_ms
    if latency is None:
        return None
    rate = problem.streams.rate_bps
    homes = [(n.host, n.stream) for n in plan.walk() if n.kind is Kind.HOME]
    ways = [0.0 if h == plan.host else float(latency[h, plan.host]) for h, _ in homes]
    straight = sum(float(rate[s]) * way for (_, s), way in zip(homes, ways, strict=True))
    cost, delay = _through(plan, rate, latency)
    return NetworkUse(cost * _MS, straight * _MS, delay, max(ways, default=0.0))


def _through(node: Node, rate: Floats, latency: Floats) -> tuple[float, float]:
    cost, delay = 0.0, 0.0
    for arc in node.inputs:
        below, late = _through(arc.node, rate, latency)
        way = float(latency[arc.node.host, node.host]) if arc.sent else 0.0
        cost += below + float(rate[arc.node.stream]) * way
        delay = max(delay, late + way)
    return cost, delay


def use_text(use: NetworkUse, bound_ms: float) -> str:
    """In a line for people."""
    bound = f", its bound {bound_ms:g} ms" if bound_ms < inf else ""
    return (
        f"{bits(use.bits)} in flight, {bits(use.straight_bits)} with everything at the proxy: "
        f"saves {use.saving:.0%}; {use.delay_ms:g} ms, {use.stretch:.2f} times the straight "
        f"{use.straight_ms:g} ms{bound}"
    )
