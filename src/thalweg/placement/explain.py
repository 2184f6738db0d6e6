"""A query's plan as the tree of SQPR (section III-A): who runs, who relays, where streams enter.

Nodes are ⟨host, operator⟩, ⟨host, μ⟩ for a relay, or a base stream at its home. The arc below a
node is a stream that it takes, from its own host or sent from another.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.units import amount, bits, bps


class Kind(enum.StrEnum):
    HOME = "home"
    RUN = "run"
    RELAY = "relay"
    OVERLAY = "overlay"  # the data overlay brings it, on ways of its own


@dataclass(frozen=True, slots=True)
class Node:
    kind: Kind
    host: int
    stream: int  # what it gives
    operator: int | None = None
    inputs: tuple[Arc, ...] = ()

    def walk(self) -> Iterator[Node]:
        yield self
        for arc in self.inputs:
            yield from arc.node.walk()


@dataclass(frozen=True, slots=True)
class Arc:
    node: Node
    sent: bool  # to another host


class Plans:
    """The plans of a deployment that is verified: every stream has one provider, and no loops."""

    def __init__(self, problem: Problem, deployment: Deployment) -> None:
        self.problem = problem
        self._serves = deployment.serves
        output = problem.operators.output
        self._runs = {(h, int(output[o])): o for h, o in deployment.runs.tolist()}
        self._sent = {(m, s): h for h, m, s in deployment.sends.tolist()}
        self._made: dict[int, list[int]] = {}  # stream -> the hosts that make it
        for host, stream in self._runs:
            self._made.setdefault(stream, []).append(host)

    def of(self, query: int) -> Node | None:
        """None if the query was not admitted."""
        host = int(self._serves[query])
        return None if host == NONE else self._node(host, int(self.problem.queries.wanted[query]))

    def _node(self, host: int, stream: int) -> Node:
        if int(self.problem.streams.home[stream]) == host:
            return Node(Kind.HOME, host, stream)
        if (host, stream) in self._runs:
            operator = self._runs[host, stream]
            inputs = self.problem.operators.inputs[operator].tolist()
            arcs = tuple(self._arc(host, s) for s in inputs)
            return Node(Kind.RUN, host, stream, operator, arcs)
        if (host, stream) in self._sent:
            return Node(Kind.RELAY, host, stream, None, (self._arc(host, stream),))
        origin = self._origin(host, stream)
        below = () if origin == NONE else (Arc(self._node(origin, stream), True),)
        return Node(Kind.OVERLAY, host, stream, None, below)

    def _origin(self, host: int, stream: int) -> int:
        """Where the overlay takes a stream from: its home, or the nearest host that makes it."""
        makers = self._made.get(stream, [])
        if not makers:
            return int(self.problem.streams.home[stream])
        latency = self.problem.hosts.latency_ms
        return min(makers, key=lambda h: (0.0 if latency is None else latency[h, host], h))

    def _arc(self, host: int, stream: int) -> Arc:
        """How the host comes by the stream: a host that was sent it is no node of its own here."""
        sender = self._sent.get((host, stream))
        return Arc(self._node(host if sender is None else sender, stream), sender is not None)


def title(problem: Problem, node: Node) -> tuple[str, str]:
    """What a node is, and where, in two parts."""
    host = problem.hosts.names[node.host]
    if node.operator is not None:
        cpu = amount(float(problem.operators.cpu[node.operator]))
        return problem.operators.names[node.operator], f"at {host}, {cpu} CPU"
    if node.kind is Kind.RELAY:
        return "relay", f"at {host}"
    what = "base stream at" if node.kind is Kind.HOME else "from the overlay, to"
    return problem.streams.names[node.stream], f"{what} {host}"


def sending(problem: Problem, arc: Arc, target: int) -> str:
    """What goes over the network to the host `target`, how much, and what that takes of it."""
    if not arc.sent:
        return ""
    rate = float(problem.streams.rate_bps[arc.node.stream])
    name = problem.streams.names[arc.node.stream]
    told = f"sends {name} to {problem.hosts.names[target]}, {bps(rate)}"
    if problem.hosts.latency_ms is None:
        return told
    way = float(problem.hosts.latency_ms[arc.node.host, target])
    return f"{told} × {way:g} ms = {bits(rate * way / 1000)}"


def explain(problem: Problem, deployment: Deployment, query: int) -> str:
    """The plan of an admitted query as text."""
    root = Plans(problem, deployment).of(query)
    name = problem.queries.names[query]
    if root is None:
        raise ValueError(f"{name} was not admitted and has no plan")
    wanted = problem.streams.names[root.stream]
    head = f"{name}: {wanted} from {problem.hosts.names[root.host]}"
    return "\n".join([head, *_lines(problem, root, "", "└─ ", "   ")])


def _lines(problem: Problem, node: Node, told: str, branch: str, below: str) -> Iterator[str]:
    yield branch + ", ".join(part for part in (*title(problem, node), told) if part)
    for arc in node.inputs:
        last = arc is node.inputs[-1]
        told = sending(problem, arc, node.host)
        yield from (
            below + line
            for line in _lines(
                problem, arc.node, told, "└─ " if last else "├─ ", "   " if last else "│  "
            )
        )
