"""From placed trees to one Deployment.

Trees know nothing of each other, and a stream reaches a host in one way only (`verify`). Where
several trees bring the same stream to the same host, the earliest way stays, of equals the one
with fewest steps. So nobody's results come later than planned; and since each step is later, or one
more, than the steps before it, the ways that stay never lead in a circle. Whatever nobody needs any
more is left out: equal parts of queries run once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Problem
from thalweg.placement.sand.query_trees import Placed, ways_of

_Place = tuple[int, int]  # host, stream
_Way = tuple[int, int]  # from this host, or by this operator; the other is NONE


def deploy(problem: Problem, placed: Sequence[Placed]) -> Deployment:
    latency_ms = ways_of(problem.hosts).latency_ms
    ways = _earliest(placed, latency_ms)
    home = problem.streams.home
    serves = {one.of.query: int(one.of.tree.proxy) for one in placed}
    runs, sends = set[tuple[int, int]](), set[tuple[int, int, int]]()
    stack = [(host, int(problem.queries.wanted[query])) for query, host in serves.items()]
    seen = set[_Place]()
    while stack:
        host, stream = stack.pop()
        if (host, stream) in seen or home[stream] == host:
            continue
        seen.add((host, stream))
        sender, operator = ways[host, stream]
        if operator != NONE:
            runs.add((host, operator))
            stack += [(host, int(s)) for s in problem.operators.inputs[operator]]
        else:
            sends.add((sender, host, stream))
            stack.append((sender, stream))
    return deployment(len(problem.queries), runs=runs, sends=sends, serves=serves)


def _earliest(placed: Sequence[Placed], latency_ms: Floats) -> dict[_Place, _Way]:
    """For each stream at each host that some tree has there, the way that stays."""
    tables = [_steps(one, latency_ms) for one in placed]
    if not tables:
        return {}
    places, when = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    host, stream, sender, operator = places.T
    order = np.lexsort((when[:, 1], when[:, 0], stream, host))
    host, stream, sender, operator = (c[order] for c in (host, stream, sender, operator))
    first = np.ones(len(order), bool)
    first[1:] = (host[1:] != host[:-1]) | (stream[1:] != stream[:-1])
    keys = zip(host[first].tolist(), stream[first].tolist(), strict=True)
    ways = zip(sender[first].tolist(), operator[first].tolist(), strict=True)
    return dict(zip(keys, ways, strict=True))


def _steps(one: Placed, latency_ms: Floats) -> tuple[Ints, Floats]:
    """Rows (host, stream, sender, operator), and (delay, number of steps) of each."""
    tree, at, streams, operators = one.of.tree, one.at, one.of.streams, one.of.operators
    delay, steps = np.zeros(len(tree)), np.zeros(len(tree))
    places, when = [], []
    for node in range(tree.root):
        here, there = int(at[node]), int(at[tree.parent[node]])
        stream, operator = int(streams[node]), int(operators[node])
        late, count = float(delay[node]), float(steps[node])
        if operator != NONE:
            count += 1
            places.append((here, stream, NONE, operator))
            when.append((late, count))
        if here != there:
            late, count = late + float(latency_ms[here, there]), count + 1
            places.append((there, stream, here, NONE))
            when.append((late, count))
        above = int(tree.parent[node])
        delay[above], steps[above] = max(delay[above], late), max(steps[above], count)
    return np.array(places, np.int32).reshape(-1, 4), np.array(when).reshape(-1, 2)
