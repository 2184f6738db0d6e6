"""From JSON text to Problem and Deployment; what is wrong is told with its JSON path."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TypeVar

import msgspec
import numpy as np

from thalweg.placement.arrays import Floats, floats, ints, ragged
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.documents.form import DeploymentText, OperatorText, ProblemText, QueryText
from thalweg.placement.documents.names import Names
from thalweg.placement.problem import (
    Hosts,
    Operators,
    Problem,
    ProblemError,
    Queries,
    Streams,
)

_Doc = TypeVar("_Doc", ProblemText, DeploymentText)


def read_problem(text: bytes | str) -> Problem:
    doc = _decoded(text, ProblemText)
    hosts = Names("host", (h.name for h in doc.hosts))
    streams = Names("stream", (s.name for s in doc.streams))
    problem = Problem(
        _hosts(doc, hosts),
        Streams(
            tuple(s.name for s in doc.streams),
            floats(s.rate_bps for s in doc.streams),
            ints(hosts.optional(s.home, f"$.streams[{i}].home") for i, s in enumerate(doc.streams)),
        ),
        _operators(doc.operators, hosts, streams),
        _queries(doc.queries, hosts, streams),
    )
    if doc.running is None:
        return problem
    return problem.with_running(_deployment(doc.running, problem, "$.running"))


def read_deployment(text: bytes | str, problem: Problem) -> Deployment:
    return _deployment(_decoded(text, DeploymentText), problem, "$")


def _decoded(text: bytes | str, kind: type[_Doc]) -> _Doc:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        raise ProblemError(path.rstrip("`") or "$", message) from None
    except msgspec.DecodeError as error:
        raise ProblemError("$", f"this is not JSON: {error}") from None


def _hosts(doc: ProblemText, names: Names) -> Hosts:
    count = len(doc.hosts)
    link: Floats | None = None
    if doc.link_bps is not None or doc.links:
        link = np.full((count, count), _limit(doc.link_bps))
        for i, entry in enumerate(doc.links):
            source = names.number(entry.source, f"$.links[{i}].from")
            target = names.number(entry.target, f"$.links[{i}].to")
            if not entry.bps >= 0:
                raise ProblemError(f"$.links[{i}].bps", "must not be negative")
            link[source, target] = entry.bps
    latency: Floats | None = None
    if doc.latency_ms is not None:
        for i, row in enumerate(doc.latency_ms):
            if len(row) != count:
                raise ProblemError(f"$.latency_ms[{i}]", f"must have {count} numbers")
        latency = floats(_limit(ms) for row in doc.latency_ms for ms in row).reshape(-1, count)
        if not np.isfinite(latency).all():  # for those who don't look at latencies too
            link = np.full((count, count), np.inf) if link is None else link
            link[~np.isfinite(latency)] = 0.0
    return Hosts(
        tuple(h.name for h in doc.hosts),
        floats(_limit(h.cpu) for h in doc.hosts),
        floats(_limit(h.out_bps) for h in doc.hosts),
        floats(_limit(h.in_bps) for h in doc.hosts),
        link,
        latency,
    )


def _operators(texts: Sequence[OperatorText], hosts: Names, streams: Names) -> Operators:
    return Operators(
        tuple(o.name for o in texts),
        ragged(
            [
                streams.number(name, f"$.operators[{i}].inputs[{j}]")
                for j, name in enumerate(o.inputs)
            ]
            for i, o in enumerate(texts)
        ),
        ints(streams.number(o.output, f"$.operators[{i}].output") for i, o in enumerate(texts)),
        floats(o.cpu for o in texts),
        floats(o.state_bytes for o in texts),
        ints(hosts.optional(o.pinned, f"$.operators[{i}].pinned") for i, o in enumerate(texts)),
    )


def _queries(texts: Sequence[QueryText], hosts: Names, streams: Names) -> Queries:
    return Queries(
        tuple(q.name for q in texts),
        ints(streams.number(q.wants, f"$.queries[{i}].wants") for i, q in enumerate(texts)),
        ints(hosts.optional(q.proxy, f"$.queries[{i}].proxy") for i, q in enumerate(texts)),
        floats(_limit(q.latency_bound_ms) for q in texts),
    )


def _deployment(doc: DeploymentText, problem: Problem, at: str) -> Deployment:
    hosts = Names("host", problem.hosts.names)
    streams = Names("stream", problem.streams.names)
    operators = Names("operator", problem.operators.names)
    queries = Names("query", problem.queries.names)
    if doc.wants is not None and doc.sends:
        raise ProblemError(f"{at}.wants", "a deployment has sends or wants, not both")
    return deployment(
        len(problem.queries),
        runs=[
            (hosts.number(h, f"{at}.runs[{i}][0]"), operators.number(o, f"{at}.runs[{i}][1]"))
            for i, (h, o) in enumerate(doc.runs)
        ],
        sends=[
            (
                hosts.number(h, f"{at}.sends[{i}][0]"),
                hosts.number(m, f"{at}.sends[{i}][1]"),
                streams.number(s, f"{at}.sends[{i}][2]"),
            )
            for i, (h, m, s) in enumerate(doc.sends)
        ],
        serves={
            queries.number(q, f"{at}.serves"): hosts.number(h, f"{at}.serves[{q!r}]")
            for q, h in doc.serves.items()
        },
        wants=None
        if doc.wants is None
        else [
            (hosts.number(h, f"{at}.wants[{i}][0]"), streams.number(s, f"{at}.wants[{i}][1]"))
            for i, (h, s) in enumerate(doc.wants)
        ],
    )


def _limit(value: float | None) -> float:
    return inf if value is None else value
