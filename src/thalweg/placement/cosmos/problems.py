"""Problems as COSMOS sees them, and its mappings as deployments.

A query is one vertex, whatever operators it needs: all of them run at its provider, over base
streams that the data overlay brings there. Queries for the same stream are one vertex, which runs
once and has several proxies. A provider is a host; its capability is its CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from thalweg.placement.arrays import NONE, Floats, Ints, Ragged, floats, ints, ragged
from thalweg.placement.checks import ProblemError
from thalweg.placement.cosmos.hierarchy import Cluster, cluster
from thalweg.placement.cosmos.model import Network, Sparse, Substreams, Vertices
from thalweg.placement.cosmos.system import System
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Problem

_LEAST_WEIGHT = 1e-12  # of the mean: a query without cost still counts, or all could be at one host


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A problem's query graph: `vertex` says which one a query belongs to."""

    problem: Problem
    system: System
    vertex: Ints  # query -> vertex
    wanted: Ints  # vertex -> stream
    operators: Ragged  # vertex -> all that it runs
    substream: Ints  # substream -> base stream
    proxy: Ints  # vertex -> the host where it is submitted

    def deploy(self, provider: Ints, admitted: Ints) -> Deployment:
        """The deployment of a mapping, for these queries only."""
        problem, streams = self.problem, len(self.problem.streams)
        served = np.unique(self.vertex[admitted])
        served = served[self.operators.lengths[served] > 0]  # who wants a base stream runs nothing
        run = np.concatenate([np.zeros(0, np.int32), *(self.operators[v] for v in served.tolist())])
        host = np.repeat(provider[served], self.operators.lengths[served])
        proxy = problem.queries.proxy[admitted]
        serves = np.full(len(problem.queries), NONE, np.int32)
        serves[admitted] = np.where(proxy == NONE, provider[self.vertex[admitted]], proxy)
        reads = self.system.queries.interests[served].tocoo()
        at = np.concatenate([provider[served][reads.row], serves[admitted]])
        stream = np.concatenate([self.substream[reads.col], problem.queries.wanted[admitted]])
        made = host.astype(np.int64) * streams + problem.operators.output[run]
        here = np.isin(at.astype(np.int64) * streams + stream, made)
        brought = ~here & (problem.streams.home[stream] != at)
        return deployment(
            len(problem.queries),
            runs=np.stack([host, run], axis=1),
            serves=ints(serves),
            wants=np.stack([at[brought], stream[brought]], axis=1),
        )


def pose(problem: Problem, tree: Cluster | None = None, k: int = 4) -> Posed:
    """The query graph of a problem, over a given coordinator tree or over one by latencies."""
    if problem.hosts.latency_ms is None:
        raise ProblemError("$.latency_ms", "COSMOS places by distance: give the latencies of hosts")
    apart = np.argwhere(~np.isfinite(problem.hosts.latency_ms))
    if len(apart):
        at, to = (problem.hosts.names[h] for h in apart[0])
        place = f"$.latency_ms[{apart[0][0]}][{apart[0][1]}]"
        told = f"no way leads from {at} to {to}, and COSMOS may put any query anywhere: add a link"
        raise ProblemError(place, told)
    pinned = problem.operators.pinned != NONE
    if pinned.any():
        place = f"$.operators[{int(np.argmax(pinned))}].pinned"
        raise ProblemError(place, "COSMOS places whole queries, and can't pin an operator")
    latency = (problem.hosts.latency_ms + problem.hosts.latency_ms.T) / 2
    wanted, of = np.unique(problem.queries.wanted, return_inverse=True)
    vertex = ints(of)
    plans = _plans(problem)
    operators = [plans.operators(stream) for stream in wanted.tolist()]
    bases = [plans.bases(stream) for stream in wanted.tolist()]
    substream = ints(np.flatnonzero(problem.streams.home != NONE))
    homes, source = np.unique(problem.streams.home[substream], return_inverse=True)
    network = Network(
        floats(latency),
        floats(latency[homes].reshape(len(homes), len(latency))),
        _capability(problem.hosts.cpu),
    )
    queries = Vertices(
        _interests(bases, substream, len(problem.streams)),
        _results(problem, vertex, len(wanted)),
        _weights(problem, operators),
        floats([problem.operators.state_bytes[list(o)].sum() for o in operators]),
    )
    rates = Substreams(floats(problem.streams.rate_bps[substream]), ints(source))
    system = System(network, tree or cluster(network.latency_ms, k), rates, queries)
    return Posed(
        problem,
        system,
        vertex,
        ints(wanted),
        ragged(operators),
        substream,
        _proxies(problem, vertex, bases),
    )


@dataclass(frozen=True, slots=True)
class _Plans:
    """For each stream the operator of its cheapest plan, where nothing else runs yet."""

    problem: Problem
    maker: dict[int, int]

    def operators(self, stream: int) -> tuple[int, ...]:
        found: dict[int, None] = {}
        stack = [stream]
        while stack:
            operator = self.maker.get(stack.pop())
            if operator is not None and operator not in found:
                found[operator] = None
                stack += self.problem.operators.inputs[operator].tolist()
        return tuple(sorted(found))

    def bases(self, stream: int) -> list[int]:
        if stream not in self.maker:
            return [stream]
        read = np.concatenate([self.problem.operators.inputs[o] for o in self.operators(stream)])
        based = read[self.problem.streams.home[read] != NONE]
        return [int(s) for s in np.unique(based)]


def _plans(problem: Problem) -> _Plans:
    cost = np.where(problem.streams.home != NONE, 0.0, np.inf)
    maker: dict[int, int] = {}
    for operator in np.argsort(problem.level, kind="stable").tolist():
        output = int(problem.operators.output[operator])
        inputs = problem.operators.inputs[operator]
        needed = float(problem.operators.cpu[operator] + cost[inputs].sum())
        if needed < cost[output]:
            cost[output], maker[output] = needed, operator
    return _Plans(problem, maker)


def _interests(bases: list[list[int]], substream: Ints, streams: int) -> Sparse:
    number = np.full(streams, NONE, np.int32)
    number[substream] = np.arange(len(substream))
    starts = np.concatenate([[0], np.cumsum([len(b) for b in bases])]).astype(np.int32)
    columns = number[np.array([s for b in bases for s in b], np.int64)]
    ones = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, starts), shape=(len(bases), len(substream)))


def _results(problem: Problem, vertex: Ints, vertices: int) -> Sparse:
    """A proxy gets a result once, however many of its users want it."""
    there = np.flatnonzero(problem.queries.proxy != NONE)
    pairs = np.unique(np.stack([vertex[there], problem.queries.proxy[there]], axis=1), axis=0)
    wanted = np.zeros(vertices, np.int64)
    wanted[vertex] = problem.queries.wanted
    rates = problem.streams.rate_bps[wanted[pairs[:, 0]]]
    return csr_array((rates, (pairs[:, 0], pairs[:, 1])), shape=(vertices, len(problem.hosts)))


def _weights(problem: Problem, operators: list[tuple[int, ...]]) -> Floats:
    cpu = np.array([problem.operators.cpu[list(o)].sum() for o in operators])
    mean = float(cpu.mean()) if len(cpu) and cpu.sum() > 0 else 1.0
    return floats(np.maximum(cpu, _LEAST_WEIGHT * mean))


def _capability(cpu: Floats) -> Floats:
    """Hosts without a limit are all alike; among limited ones they would take everything."""
    if np.isfinite(cpu).all():
        return cpu
    if np.isfinite(cpu).any():
        host = int(np.argmax(~np.isfinite(cpu)))
        raise ProblemError(
            f"$.hosts[{host}].cpu", "COSMOS gives shares by CPU: limit all hosts, or none"
        )
    return floats(np.ones(len(cpu)))


def _proxies(problem: Problem, vertex: Ints, bases: list[list[int]]) -> Ints:
    """Where a vertex is submitted: at its first query's proxy, else where its inputs come from."""
    found = np.full(len(bases), NONE, np.int32)
    for query in range(len(vertex) - 1, -1, -1):
        if problem.queries.proxy[query] != NONE:
            found[vertex[query]] = problem.queries.proxy[query]
    for v in np.flatnonzero(found == NONE).tolist():
        heaviest = max(bases[v], key=lambda s: float(problem.streams.rate_bps[s]))
        found[v] = problem.streams.home[heaviest]
    return ints(found)
