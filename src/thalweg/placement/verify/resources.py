"""Whether hosts and links can carry what they are given (III.6)."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.verify.rules import ROUNDING, Rule, Violation


def resources(problem: Problem, deployment: Deployment) -> list[Violation]:
    hosts, rate = problem.hosts, problem.streams.rate_bps
    source, target, sent = deployment.sends.T
    cpu = _loads(deployment.runs[:, 0], problem.operators.cpu[deployment.runs[:, 1]], problem)
    received = _loads(target, rate[sent], problem)
    if deployment.wants is not None:
        received = received + _loads(deployment.wants[:, 0], rate[deployment.wants[:, 1]], problem)
    results = {
        (int(h), int(s))
        for h, s in zip(deployment.serves, problem.queries.wanted, strict=True)
        if h != NONE
    }
    emitted = _loads(source, rate[sent], problem)
    for h, s in sorted(results):
        emitted[h] += rate[s]
    found = [
        *_over(Rule.CPU, "CPU", cpu, hosts.cpu, problem),
        *_over(Rule.BANDWIDTH_OUT, "bps out", emitted, hosts.out_bps, problem),
        *_over(Rule.BANDWIDTH_IN, "bps in", received, hosts.in_bps, problem),
    ]
    if hosts.link_bps is not None:
        link = np.zeros_like(hosts.link_bps)
        np.add.at(link, (source, target), rate[sent])
        over = np.argwhere(link > hosts.link_bps * (1 + ROUNDING))
        found += [
            Violation(
                Rule.LINK,
                f"{hosts.names[h]} to {hosts.names[m]} carries {link[h, m]:g} bps"
                f" of {hosts.link_bps[h, m]:g}",
            )
            for h, m in over
        ]
    return found


def _loads(places: Ints, amounts: Floats, problem: Problem) -> Floats:
    loads = np.zeros(len(problem.hosts))
    np.add.at(loads, places, amounts)
    return loads


def _over(
    rule: Rule, what: str, used: Floats, capacity: Floats, problem: Problem
) -> list[Violation]:
    return [
        Violation(rule, f"{problem.hosts.names[h]} needs {used[h]:g} {what} of {capacity[h]:g}")
        for h in np.flatnonzero(used > capacity * (1 + ROUNDING))
    ]


def verify_shares(problem: Problem, deployment: Deployment, slack: float) -> tuple[Violation, ...]:
    """Whether no host carries more than (1 + slack) times its share of the load by its CPU."""
    used = _loads(deployment.runs[:, 0], problem.operators.cpu[deployment.runs[:, 1]], problem)
    fair = used.sum() * problem.hosts.cpu / problem.hosts.cpu.sum()
    return tuple(_over(Rule.SHARE, "a load", used, (1 + slack) * fair, problem))
