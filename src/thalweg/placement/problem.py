"""Problem: what there is to place, and where it could go.

The model of SQPR (section II) with what later strategies need besides: proxies, latencies and
bounds on them. Everything is kept in columns: entry i of each column is about host, stream,
operator or query number i. A column of indexes says NONE (−1) where there is nothing, and a
capacity is infinite where there is no limit. A wrong problem can't be built: the error names the
place by its path in the JSON form (`documents.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.placement.arrays import NONE, Flags, Floats, Ints, Ragged, grouped, ints
from thalweg.placement.checks import (
    ProblemError,
    check_amounts,
    check_indexes,
    check_length,
    check_matrix,
    check_names,
    refuse,
)
from thalweg.placement.deployment import Deployment

__all__ = ["Hosts", "Operators", "Problem", "ProblemError", "Queries", "Streams"]


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """ζ is `cpu`, in any unit that operators share; β is `out_bps` and `in_bps`; κ `link_bps`."""

    names: tuple[str, ...]
    cpu: Floats
    out_bps: Floats
    in_bps: Floats
    link_bps: Floats | None = None  # [from, to]; None: links limit nothing
    latency_ms: Floats | None = None  # [from, to]; None: not considered

    def __len__(self) -> int:
        return len(self.names)

    def __post_init__(self) -> None:
        check_names(self.names, "hosts")
        for column in ("cpu", "out_bps", "in_bps"):
            check_amounts(getattr(self, column), len(self), f"$.hosts[{{}}].{column}")
        for column in ("link_bps", "latency_ms"):
            matrix = getattr(self, column)
            if matrix is not None:
                check_matrix(matrix, len(self), column)


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """ϱ is `rate_bps`; `home` is where a base stream enters, NONE for what operators make."""

    names: tuple[str, ...]
    rate_bps: Floats
    home: Ints

    def __len__(self) -> int:
        return len(self.names)

    def __post_init__(self) -> None:
        check_names(self.names, "streams")
        check_amounts(self.rate_bps, len(self), "$.streams[{}].rate_bps", finite=True)
        check_length(self.home, len(self), "$.streams")


@dataclass(frozen=True, slots=True, eq=False)
class Operators:
    """(S_o, s_o, γ_o) of section II-A: `inputs`, `output`, `cpu`."""

    names: tuple[str, ...]
    inputs: Ragged
    output: Ints
    cpu: Floats
    state_bytes: Floats
    pinned: Ints  # the one host that may run it, or NONE

    def __len__(self) -> int:
        return len(self.names)

    def __post_init__(self) -> None:
        check_names(self.names, "operators")
        for column in (self.output, self.pinned, self.inputs):
            check_length(column, len(self), "$.operators")
        check_amounts(self.cpu, len(self), "$.operators[{}].cpu", finite=True)
        check_amounts(self.state_bytes, len(self), "$.operators[{}].state_bytes", finite=True)
        refuse(self.inputs.lengths == 0, "$.operators[{}].inputs", "an operator has an input")


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Standing demands, in order of arrival; with a proxy, the result is wanted just there."""

    names: tuple[str, ...]
    wanted: Ints
    proxy: Ints
    latency_bound_ms: Floats  # infinite: none

    def __len__(self) -> int:
        return len(self.names)

    def __post_init__(self) -> None:
        check_names(self.names, "queries")
        check_length(self.wanted, len(self), "$.queries")
        check_length(self.proxy, len(self), "$.queries")
        check_amounts(self.latency_bound_ms, len(self), "$.queries[{}].latency_bound_ms")


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    hosts: Hosts
    streams: Streams
    operators: Operators
    queries: Queries
    running: Deployment | None = None
    makers: Ragged = field(init=False)  # stream -> the operators that make it
    level: Ints = field(init=False)  # of an operator: 0 over base streams, else above its inputs'

    def __post_init__(self) -> None:
        hosts, streams = len(self.hosts), len(self.streams)
        check_indexes(self.streams.home, hosts, "$.streams[{}].home", "host", optional=True)
        check_indexes(self.operators.output, streams, "$.operators[{}].output", "stream")
        check_indexes(self.operators.pinned, hosts, "$.operators[{}].pinned", "host", True)
        check_indexes(self.queries.wanted, streams, "$.queries[{}].wants", "stream")
        check_indexes(self.queries.proxy, hosts, "$.queries[{}].proxy", "host", optional=True)
        used = self.operators.inputs.indices
        if len(used) and not (used.min() >= 0 and used.max() < streams):
            raise ProblemError("$.operators", "an input is not among the streams")
        if self.hosts.latency_ms is None:
            bounded = np.isfinite(self.queries.latency_bound_ms)
            place = "$.queries[{}].latency_bound_ms"
            refuse(bounded, place, "a bound on latency needs the matrix $.latency_ms")
        makers = grouped(self.operators.output, streams)
        object.__setattr__(self, "makers", makers)
        made, based = makers.lengths > 0, self.streams.home != NONE
        refuse(made & based, "$.streams[{}]", "a base stream has a home and no operator makes it")
        refuse(~made & ~based, "$.streams[{}]", "it has no home, and no operator makes it")
        object.__setattr__(self, "level", _levels(self.streams, self.operators))

    def with_running(self, running: Deployment | None) -> Problem:
        return Problem(self.hosts, self.streams, self.operators, self.queries, running)


def _levels(streams: Streams, operators: Operators) -> Ints:
    """How many operators deep each operator's output is; a stream made from itself is refused."""
    level = np.full(len(operators), NONE, np.int32)
    settled: Flags = streams.home != NONE
    for depth in range(len(operators)):
        inputs_settled = np.logical_and.reduceat(
            settled[operators.inputs.indices], operators.inputs.starts[:-1]
        )
        ready = (level == NONE) & inputs_settled
        if not ready.any():
            break
        level[ready] = depth
        waiting = np.bincount(operators.output[level == NONE], minlength=len(streams))
        made = np.bincount(operators.output[level != NONE], minlength=len(streams))
        settled = settled | ((made > 0) & (waiting == 0))
    if (level == NONE).any():
        raise _circular(streams, operators, level == NONE)
    return ints(level)


def _circular(streams: Streams, operators: Operators, stuck: Flags) -> ProblemError:
    """Back from one that waits for its inputs to whoever makes them, until somebody comes twice."""
    maker = {int(operators.output[o]): o for o in np.flatnonzero(stuck).tolist()}
    way = [int(np.argmax(stuck))]
    while len(set(way)) == len(way):
        way.append(next(maker[s] for s in operators.inputs[way[-1]].tolist() if s in maker))
    circle = way[way.index(way[-1]) : -1][::-1]
    told = ", ".join(
        f"{operators.names[o]} makes {streams.names[operators.output[o]]} for {operators.names[to]}"
        for o, to in zip(circle, [*circle[1:], circle[0]], strict=True)
    )
    why = f"a cycle: {told}; everything must follow from base streams"
    return ProblemError(f"$.operators[{circle[0]}]", why)
