"""What a plan changes of what runs already: operators that move, with their state."""

from __future__ import annotations

from typing import Any

from thalweg.placement.deployment import Deployment
from thalweg.placement.migrations import migrations
from thalweg.placement.problem import Problem


def moves(problem: Problem, planned: Deployment) -> list[dict[str, Any]]:
    """Where something runs already: who moves, starts (from nowhere) or ends (to nowhere)."""
    if problem.running is None:
        return []
    hosts, operators = problem.hosts.names, problem.operators.names
    return [
        {
            "operator": operators[m.operator],
            "from": None if m.source is None else hosts[m.source],
            "to": None if m.target is None else hosts[m.target],
            "state_bytes": m.state_bytes,
        }
        for m in migrations(problem, problem.running, planned)
    ]
