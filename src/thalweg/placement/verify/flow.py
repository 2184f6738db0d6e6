"""What is where in a deployment, and what of it truly follows from base streams.

Streams spread from their homes in rounds: a run adds its output once all its inputs have arrived,
a send adds its stream at the receiver once the sender has it. What never arrives, though everyone
seems supplied, lives on a loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import NONE, Flags, Floats, Ints
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem

_AT_ONCE = 10_000  # wants whose ways from all hosts are in memory at the same time


@dataclass(frozen=True, slots=True, eq=False)
class Derivation:
    provided: Flags  # [host, stream]: a home, a run, a send or a want says that it is there
    derived: Flags  # [host, stream]: and it follows from base streams
    delay_ms: Floats  # [host, stream]: the longest way from a home, by the latencies
    runs_supplied: Flags  # all inputs are provided
    runs_derived: Flags
    sends_supplied: Flags
    sends_derived: Flags


def derive(problem: Problem, deployment: Deployment) -> Derivation:
    run_host, run_operator = deployment.runs.T
    source, target, sent = deployment.sends.T
    output = problem.operators.output[run_operator]
    homes = _homes(problem)

    # One entry per input of each run: which run, and where its stream must be.
    lengths = problem.operators.inputs.lengths[run_operator]
    of_run = np.repeat(np.arange(len(run_operator)), lengths)
    empty = np.zeros(0, np.int32)
    needed = np.concatenate([empty, *(problem.operators.inputs[o] for o in run_operator)])
    at = run_host[of_run]

    provided = homes.copy()
    provided[run_host, output] = True
    provided[target, sent] = True
    if deployment.wants is not None:
        provided[deployment.wants[:, 0], deployment.wants[:, 1]] = True

    derived = homes.copy()
    bounded = np.isfinite(problem.queries.latency_bound_ms).any()
    latency = problem.hosts.latency_ms if bounded else None
    # Delays are a large matrix, which is made only where somebody asks for them.
    delay = np.broadcast_to(0.0, homes.shape) if latency is None else np.where(homes, 0.0, np.inf)
    runs_derived = np.zeros(len(run_operator), bool)
    sends_derived = np.zeros(len(sent), bool)
    while True:
        if deployment.wants is not None:
            _spread(deployment.wants, derived, delay, latency)
        lacking = np.bincount(of_run[~derived[at, needed]], minlength=len(run_operator))
        new_runs = ~runs_derived & (lacking == 0)
        new_sends = ~sends_derived & derived[source, sent]
        if not new_runs.any() and not new_sends.any():
            break
        if latency is not None:
            longest = np.zeros(len(run_operator))
            np.maximum.at(longest, of_run, delay[at, needed])
            way = delay[source, sent] + latency[source, target]
            for where, what, when, new in (
                (run_host, output, longest, new_runs),
                (target, sent, way, new_sends),
            ):
                np.minimum.at(delay, (where[new], what[new]), when[new])
        derived[run_host[new_runs], output[new_runs]] = True
        derived[target[new_sends], sent[new_sends]] = True
        runs_derived |= new_runs
        sends_derived |= new_sends

    return Derivation(
        provided,
        derived,
        delay,
        np.bincount(of_run[~provided[at, needed]], minlength=len(run_operator)) == 0,
        runs_derived,
        provided[source, sent],
        sends_derived,
    )


def _homes(problem: Problem) -> Flags:
    homes = np.zeros((len(problem.hosts), len(problem.streams)), bool)
    based = np.flatnonzero(problem.streams.home != NONE)
    homes[problem.streams.home[based], based] = True
    return homes


def _spread(wants: Ints, derived: Flags, delay: Floats, latency: Floats | None) -> None:
    """With wants, the overlay brings what anyone has to whoever wants it, from the nearest."""
    host, stream = wants.T
    exists: Flags = np.asarray(derived.any(axis=0))
    pending = np.flatnonzero(~derived[host, stream] & exists[stream])
    if latency is not None:
        for some in np.array_split(pending, len(pending) // _AT_ONCE + 1):
            ways = delay[:, stream[some]] + latency[:, host[some]]
            delay[host[some], stream[some]] = ways.min(axis=0)
    derived[host[pending], stream[pending]] = True
