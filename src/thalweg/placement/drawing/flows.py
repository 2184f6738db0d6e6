"""What hosts send each other, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class Flow:
    source: int
    target: int
    streams: tuple[int, ...]
    rate_bps: float


def flows(problem: Problem, deployment: Deployment) -> list[Flow]:
    streams: dict[tuple[int, int], list[int]] = {}
    for source, target, stream in deployment.sends.tolist():
        streams.setdefault((source, target), []).append(stream)
    return [
        Flow(source, target, tuple(sent), float(problem.streams.rate_bps[sent].sum()))
        for (source, target), sent in sorted(streams.items())
    ]
