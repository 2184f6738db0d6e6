"""The independent judge of deployments.

Knows the rules and nothing of the strategies: it shares no code with them, and adds up loads by
itself. The rules are SQPR's (III.4 to III.7) and its conditions on plans: C1, the result served is
the one wanted; C2, an operator has all its inputs at its host; C3, a stream reaches a host in one
way only; C4, everything follows from base streams. Besides, there are no sends of a host to
itself, pins and proxies are kept, and so are bounds on latency.
"""

from __future__ import annotations

from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.verify.demand import demand, latency
from thalweg.placement.verify.flow import derive
from thalweg.placement.verify.references import references
from thalweg.placement.verify.resources import resources, verify_shares
from thalweg.placement.verify.rules import Rule, Violation
from thalweg.placement.verify.structure import (
    availability,
    causality,
    pins,
    providers,
    self_sends,
)

__all__ = ["Rule", "Violation", "verify", "verify_shares"]


def verify(problem: Problem, deployment: Deployment) -> tuple[Violation, ...]:
    """Everything that is wrong with the deployment; nothing if it may run."""
    broken = references(problem, deployment)
    if broken:  # the other checks could not even look things up
        return tuple(broken)
    derivation = derive(problem, deployment)
    return (
        *self_sends(problem, deployment),
        *pins(problem, deployment),
        *providers(problem, deployment),
        *availability(problem, deployment, derivation),
        *causality(problem, deployment, derivation),
        *demand(problem, deployment, derivation),
        *latency(problem, deployment, derivation),
        *resources(problem, deployment),
    )
