"""Whether everything has what it needs, in one way, and truly (C2 to C4; III.5, III.7)."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.verify.flow import Derivation
from thalweg.placement.verify.rules import Rule, Violation


def self_sends(problem: Problem, deployment: Deployment) -> list[Violation]:
    return [
        Violation(
            Rule.SELF_SEND,
            f"{problem.hosts.names[h]} sends {problem.streams.names[s]} to itself",
        )
        for h, m, s in deployment.sends
        if h == m
    ]


def pins(problem: Problem, deployment: Deployment) -> list[Violation]:
    host, operator = deployment.runs.T
    pinned = problem.operators.pinned[operator]
    return [
        Violation(
            Rule.PIN,
            f"{problem.operators.names[o]} is pinned to {problem.hosts.names[p]}"
            f" and runs at {problem.hosts.names[h]}",
        )
        for h, o, p in zip(host, operator, pinned, strict=True)
        if p not in (NONE, h)
    ]


def providers(problem: Problem, deployment: Deployment) -> list[Violation]:
    streams = len(problem.streams)
    host, operator = deployment.runs.T.astype(np.int64)
    _, target, sent = deployment.sends.T.astype(np.int64)
    based = np.flatnonzero(problem.streams.home != NONE)
    codes = [
        problem.streams.home[based].astype(np.int64) * streams + based,
        host * streams + problem.operators.output[operator],
        target * streams + sent,
    ]
    if deployment.wants is not None:
        codes.append(deployment.wants[:, 0].astype(np.int64) * streams + deployment.wants[:, 1])
    code, times = np.unique(np.concatenate(codes), return_counts=True)
    return [
        Violation(
            Rule.PROVIDER,
            f"{problem.streams.names[c % streams]} reaches"
            f" {problem.hosts.names[c // streams]} in {n} ways",
        )
        for c, n in zip(code[times > 1], times[times > 1], strict=True)
    ]


def availability(
    problem: Problem, deployment: Deployment, derivation: Derivation
) -> list[Violation]:
    hosts, streams, operators = problem.hosts, problem.streams, problem.operators
    found = [
        Violation(
            Rule.AVAILABILITY,
            f"{operators.names[o]} runs at {hosts.names[h]} without {streams.names[s]}",
        )
        for h, o in deployment.runs[~derivation.runs_supplied]
        for s in operators.inputs[o]
        if not derivation.provided[h, s]
    ]
    found += [
        Violation(
            Rule.AVAILABILITY,
            f"{hosts.names[h]} sends {streams.names[s]} to {hosts.names[m]} and does not have it",
        )
        for h, m, s in deployment.sends[~derivation.sends_supplied]
    ]
    if deployment.wants is not None:
        exists = streams.home != NONE
        exists[operators.output[deployment.runs[:, 1]]] = True
        found += [
            Violation(
                Rule.AVAILABILITY, f"{hosts.names[h]} wants {streams.names[s]}, which nobody makes"
            )
            for h, s in deployment.wants[~exists[deployment.wants[:, 1]]]
        ]
    return found


def causality(problem: Problem, deployment: Deployment, derivation: Derivation) -> list[Violation]:
    """What has its inputs, and still does not follow from base streams, feeds itself."""
    hosts = problem.hosts.names
    loops = [
        f"{problem.operators.names[o]} at {hosts[h]}"
        for h, o in deployment.runs[derivation.runs_supplied & ~derivation.runs_derived]
    ]
    loops += [
        f"{problem.streams.names[s]} from {hosts[h]} to {hosts[m]}"
        for h, m, s in deployment.sends[derivation.sends_supplied & ~derivation.sends_derived]
    ]
    return [
        Violation(Rule.CAUSALITY, f"{what} does not follow from base streams") for what in loops
    ]
