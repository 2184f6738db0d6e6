"""Whether queries get what they want, where and when they want it (C1; III.4)."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.verify.flow import Derivation
from thalweg.placement.verify.rules import ROUNDING, Rule, Violation


def demand(problem: Problem, deployment: Deployment, derivation: Derivation) -> list[Violation]:
    hosts, queries = problem.hosts.names, problem.queries
    found = []
    server: dict[int, int] = {}
    for q in np.flatnonzero(deployment.serves != NONE).tolist():
        host, wanted = int(deployment.serves[q]), int(queries.wanted[q])
        told = f"{queries.names[q]} is served by {hosts[host]}"
        if not derivation.provided[host, wanted]:
            name = problem.streams.names[wanted]
            found.append(Violation(Rule.DEMAND, f"{told}, which does not have {name}"))
        elif not derivation.derived[host, wanted]:
            name = problem.streams.names[wanted]
            text = f"{told}, where {name} does not follow from base streams"
            found.append(Violation(Rule.DEMAND, text))
        if queries.proxy[q] == NONE:
            if server.setdefault(wanted, host) != host:
                other = hosts[server[wanted]]
                text = f"{told}, and the same stream is served by {other} as well"
                found.append(Violation(Rule.DEMAND, text))
        elif queries.proxy[q] != host:
            text = f"{told}, but wanted at {hosts[queries.proxy[q]]}"
            found.append(Violation(Rule.PROXY, text))
    return found


def latency(problem: Problem, deployment: Deployment, derivation: Derivation) -> list[Violation]:
    queries = problem.queries
    bounded = (deployment.serves != NONE) & np.isfinite(queries.latency_bound_ms)
    found = []
    for q in np.flatnonzero(bounded).tolist():
        delay = derivation.delay_ms[deployment.serves[q], queries.wanted[q]]
        bound = queries.latency_bound_ms[q]
        if delay > bound * (1 + ROUNDING):
            text = f"{queries.names[q]} comes after {delay:g} ms, its bound is {bound:g} ms"
            found.append(Violation(Rule.LATENCY, text))
    return found
