"""A planning problem for the solver: hosts, streams and operators that are free, all else fixed.

Both the whole problem (III.8) and a neighbourhood of one query have this form. A *node* is a host
of the problem; nodes that only send are hosts outside the neighbourhood which have a stream to
spare. What is fixed shows as streams that are given and capacities that are what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.placement.problem import Problem
from thalweg.placement.rows import Place


@dataclass(frozen=True, slots=True)
class Demand:
    """A stream that one of these hosts has to serve; not required: if that is possible (O₁)."""

    stream: int
    hosts: tuple[int, ...]
    required: bool = True
    queries: int = 1  # that want it


@dataclass(frozen=True, slots=True)
class Instance:
    problem: Problem
    hosts: tuple[int, ...]  # may run, relay, receive and serve
    operators: tuple[int, ...]
    given: frozenset[Place]  # there already, for nothing; also at nodes that only send
    demands: tuple[Demand, ...]
    cpu_left: dict[int, float]
    out_left: dict[int, float]
    in_left: dict[int, float]
    link_left: dict[tuple[int, int], float]  # of links that are limited
    hops: int = 1  # how often a stream may be passed on before it is used
    needed: frozenset[Place] = frozenset()  # used there by what is fixed: has to be there
