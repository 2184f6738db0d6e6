"""From a problem's queries to trees.

A query's abstract plans may have many join orders; SAND takes the tree as given (2.1). Here it is
the one whose streams have the least rates in sum, as an optimiser that knows no network chooses;
for a query that runs already, the one that runs. A stream that is taken twice is two nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.arrays import NONE, Floats, Ints, floats, ints
from thalweg.placement.explain import Kind, Node, Plans
from thalweg.placement.problem import Hosts, Problem, ProblemError
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.tree import Tree

MOST_NODES = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class QueryTree:
    """What each node stands for in the problem; the root gives what is wanted."""

    query: int
    tree: Tree
    streams: Ints
    operators: Ints  # NONE for sources and the root


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    of: QueryTree
    at: Ints  # of each node, its host


_Row = tuple[int, int, int]  # stream, operator, and the row above


def ways_of(hosts: Hosts) -> Ways:
    """Latencies are distances; without any, all hosts are equally far from each other.

    A link without capacity is no way.
    """
    count = len(hosts)
    distance = np.ones((count, count)) if hosts.latency_ms is None else hosts.latency_ms.copy()
    if hosts.link_bps is not None:
        distance[hosts.link_bps == 0] = np.inf
    np.fill_diagonal(distance, 0.0)
    return Ways(distance, distance)


def query_tree(problem: Problem, query: int) -> QueryTree:
    plans = abstract_plans(problem, int(problem.queries.wanted[query]))
    maker = _lightest(plans, problem.streams.rate_bps)
    rows: list[_Row] = []
    stack = [(plans.wanted, NONE)]
    while stack:
        stream, above = stack.pop()
        rows.append((stream, maker[stream], above))
        if maker[stream] != NONE:
            stack += [(below, len(rows) - 1) for below in plans.inputs[maker[stream]]]
        _check_size(problem, query, rows)
    return _tree(problem, query, rows)


def running_tree(plans: Plans, query: int) -> Placed | None:
    """The tree of a query that runs, and where; None if it does not, or streams are not sent."""
    problem, plan = plans.problem, plans.of(query)
    if plan is None or any(node.kind is Kind.OVERLAY for node in plan.walk()):
        return None
    rows: list[_Row] = []
    hosts: list[int] = []
    stack: list[tuple[Node, int]] = [(plan, NONE)]
    while stack:
        node, above = stack.pop()
        while node.kind is Kind.RELAY:  # the tree knows ends only
            node = node.inputs[0].node
        rows.append((node.stream, NONE if node.operator is None else node.operator, above))
        hosts.append(node.host)
        stack += [(arc.node, len(rows) - 1) for arc in node.inputs]
        _check_size(problem, query, rows)
    found = _tree(problem, query, rows)
    return Placed(found, ints([*reversed(hosts), found.tree.proxy]))


def _lightest(plans: AbstractPlans, rate_bps: Floats) -> dict[int, int]:
    """Of each stream the operator to make it, so that the rates of all streams below are least."""
    below: dict[int, float] = {}
    maker: dict[int, int] = {}
    for stream in plans.streams:
        options = [
            (sum(float(rate_bps[i]) + below[i] for i in plans.inputs[o]), o)
            for o in plans.makers[stream]
        ]
        below[stream], maker[stream] = min(options, default=(0.0, NONE))
    return maker


def _tree(problem: Problem, query: int, rows: list[_Row]) -> QueryTree:
    """Rows have takers before inputs, and the last input first: backwards that is post-order."""
    proxy, last = int(problem.queries.proxy[query]), len(rows) - 1
    if proxy == NONE:
        raise ProblemError(
            f"$.queries[{query}].proxy",
            "operators are placed between sources and a proxy: say where the result is wanted",
        )
    rows = rows[::-1]
    streams = [stream for stream, _, _ in rows]
    operators = [operator for _, operator, _ in rows]
    names = [
        problem.streams.names[s] if o == NONE else problem.operators.names[o]
        for s, o in zip(streams, operators, strict=True)
    ]
    pinned = [
        problem.streams.home[s] if o == NONE else problem.operators.pinned[o]
        for s, o in zip(streams, operators, strict=True)
    ]
    tree = Tree(
        problem.queries.names[query],
        (*names, "proxy"),
        ints([last - above for _, _, above in rows] + [NONE]),
        floats([*problem.streams.rate_bps[streams].tolist(), 0.0]),
        ints([*pinned, proxy]),
        float(problem.queries.latency_bound_ms[query]),
    )
    return QueryTree(query, tree, ints([*streams, streams[-1]]), ints([*operators, NONE]))


def _check_size(problem: Problem, query: int, rows: list[_Row]) -> None:
    if len(rows) > MOST_NODES:
        raise ProblemError(
            f"$.queries[{query}]",
            f"{problem.queries.names[query]} takes streams so often that its tree has more than "
            f"{MOST_NODES:,} nodes: split it into several queries",
        )
