"""What of a mapping can run: COSMOS shares out load, but hosts may have limits besides.

A query whose bound on latency is not met at its provider is refused, and so are the last to come
at a host that has not the CPU or the bandwidth for all that was mapped to it.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints, ints
from thalweg.placement.cosmos.problems import Posed
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.strategy import Refusal
from thalweg.placement.units import amount

_ROUNDING = 1 + 1e-9

Over = tuple[str, int, float, float]  # resource, host, needed, there


def admit(posed: Posed, provider: Ints) -> tuple[Deployment, tuple[Refusal, ...]]:
    refusals = _too_late(posed, provider)
    refused = {r.query for r in refusals}
    everyone = range(len(posed.problem.queries))
    admitted = [q for q in everyone if q not in refused]
    while True:
        found = posed.deploy(provider, ints(admitted))
        over = _over(posed, found)
        if over is None:
            return found, tuple(sorted(refusals, key=lambda r: r.query))
        resource, host, needed, has = over
        leaving = set(_last(posed, provider, found, admitted, over))
        told = f"{posed.problem.hosts.names[host]} would need {amount(needed)} of {amount(has)}"
        refusals += [
            Refusal(q, resource, host, told) for q in admitted if posed.vertex[q] in leaving
        ]
        admitted = [q for q in admitted if posed.vertex[q] not in leaving]


def _last(
    posed: Posed, provider: Ints, found: Deployment, admitted: list[int], over: Over
) -> list[int]:
    """The vertices of those who come last at a host; of CPU it is known how many must leave."""
    resource, host, needed, has = over
    at = [q for q in admitted if host in (provider[posed.vertex[q]], found.serves[q])]
    last = dict.fromkeys(int(posed.vertex[q]) for q in reversed(at))
    if resource != "cpu":
        return list(last)[:1]
    here = [v for v in last if provider[v] == host]
    freed = np.cumsum(posed.system.queries.weight[here])
    return here[: int(np.searchsorted(freed, needed - has)) + 1]


def _too_late(posed: Posed, provider: Ints) -> list[Refusal]:
    problem = posed.problem
    bounds = problem.queries.latency_bound_ms
    latency = problem.hosts.latency_ms
    assert latency is not None  # `pose` has seen to that
    found = []
    for q in np.flatnonzero(np.isfinite(bounds)).tolist():
        v = posed.vertex[q]
        at = int(provider[v])
        read = posed.substream[posed.system.queries.interests[[v]].indices]
        takes = float(latency[problem.streams.home[read], at].max(initial=0.0))
        proxy = int(problem.queries.proxy[q])
        takes += 0.0 if proxy == NONE else float(latency[at, proxy])
        if takes > bounds[q] * _ROUNDING:
            told = f"it would come after {takes:g} ms, its bound is {bounds[q]:g} ms"
            found.append(Refusal(q, "latency", at, f"{told}; in-network places by bounds"))
    return found


def _over(posed: Posed, found: Deployment) -> Over | None:
    hosts, load = posed.problem.hosts, load_of(posed.problem, found)
    limits: tuple[tuple[str, Floats, Floats], ...] = (
        ("cpu", load.cpu, hosts.cpu),
        ("bandwidth out", load.out_bps, hosts.out_bps),
        ("bandwidth in", load.in_bps, hosts.in_bps),
    )
    for resource, used, has in limits:
        over = np.flatnonzero(used > has * _ROUNDING)
        if len(over):
            h = int(over[0])
            return resource, h, float(used[h]), float(has[h])
    return None
