"""From Problem and Deployment to JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec
import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import cost_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.documents.form import (
    CostText,
    DeploymentText,
    HostText,
    LinkText,
    OperatorText,
    ProblemText,
    QueryText,
    StreamText,
)
from thalweg.placement.problem import Hosts, Problem


def write_problem(problem: Problem) -> bytes:
    return msgspec.json.format(msgspec.json.encode(problem_text(problem)), indent=1)


def write_deployment(problem: Problem, deployment: Deployment) -> bytes:
    return msgspec.json.format(msgspec.json.encode(deployment_text(problem, deployment)), indent=1)


def problem_text(problem: Problem) -> ProblemText:
    hosts, streams = problem.hosts, problem.streams
    operators, queries = problem.operators, problem.queries
    latency = hosts.latency_ms
    return ProblemText(
        hosts=[
            HostText(
                name, _finite(hosts.cpu[i]), _finite(hosts.out_bps[i]), _finite(hosts.in_bps[i])
            )
            for i, name in enumerate(hosts.names)
        ],
        streams=[
            StreamText(name, float(streams.rate_bps[i]), _name(hosts.names, streams.home[i]))
            for i, name in enumerate(streams.names)
        ],
        operators=[
            OperatorText(
                name,
                [streams.names[s] for s in operators.inputs[i]],
                streams.names[operators.output[i]],
                float(operators.cpu[i]),
                float(operators.state_bytes[i]),
                _name(hosts.names, operators.pinned[i]),
            )
            for i, name in enumerate(operators.names)
        ],
        queries=[
            QueryText(
                name,
                streams.names[queries.wanted[i]],
                _name(hosts.names, queries.proxy[i]),
                _finite(queries.latency_bound_ms[i]),
            )
            for i, name in enumerate(queries.names)
        ],
        links=_links(hosts),
        latency_ms=None if latency is None else [[_finite(ms) for ms in row] for row in latency],
        running=None if problem.running is None else deployment_text(problem, problem.running),
    )


def deployment_text(problem: Problem, deployment: Deployment) -> DeploymentText:
    hosts, streams = problem.hosts.names, problem.streams.names
    cost = cost_of(problem, deployment)
    return DeploymentText(
        runs=[(hosts[h], problem.operators.names[o]) for h, o in deployment.runs],
        sends=[(hosts[h], hosts[m], streams[s]) for h, m, s in deployment.sends],
        serves={
            problem.queries.names[q]: hosts[h] for q, h in enumerate(deployment.serves) if h != NONE
        },
        wants=None
        if deployment.wants is None
        else [(hosts[h], streams[s]) for h, s in deployment.wants],
        cost=CostText(cost.admitted, cost.network_bps, cost.cpu, cost.busiest),
    )


def _links(hosts: Hosts) -> list[LinkText]:
    if hosts.link_bps is None:
        return []
    limited = np.argwhere(np.isfinite(hosts.link_bps))
    return [
        LinkText(hosts.names[h], hosts.names[m], float(hosts.link_bps[h, m])) for h, m in limited
    ]


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _name(names: Sequence[str], index: int) -> str | None:
    return None if index == NONE else names[index]
