"""Random processing trees (SAND 6.1), and problems made of trees.

Every operator takes `fanout` inputs, sources lie `depth` operators deep, selectivities are uniform
from 0 to a bound. The source draws rates "between two size bounds" (5) that it does not give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.random import Generator

from thalweg.placement.arrays import NONE, Floats, floats, ints, ragged
from thalweg.placement.problem import Hosts, Operators, Problem, Queries, Streams
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.query_trees import QueryTree
from thalweg.placement.sand.tree import Tree


@dataclass(frozen=True, slots=True)
class Shape:
    """How trees look; depths are drawn with equal chances."""

    depths: tuple[int, ...] = (3, 4, 5)
    fanout: int = 2
    selectivity: float = 1.0  # at most
    rate_bps: tuple[float, float] = (1e6, 10e6)

    def __post_init__(self) -> None:
        if self.fanout < 1 or not self.depths or min(self.depths) < 1:
            raise ValueError("a tree has operators: a fanout and depths of one or more")
        if not 0 <= self.rate_bps[0] <= self.rate_bps[1] or self.selectivity < 0:
            raise ValueError("rates and selectivities are not negative, and the lower comes first")


def draw_tree(shape: Shape, depth: int, proxy: int, homes: Sequence[int], rng: Generator) -> Tree:
    """Sources at `homes` in turn: with fewer homes than sources, several stand at one."""
    count = shape.fanout**depth
    rates = rng.uniform(*shape.rate_bps, count)
    sources = tuple(
        Source(f"s{i}", float(rates[i]), int(homes[i % len(homes)])) for i in range(count)
    )
    operators: list[Operator] = []
    level = [source.name for source in sources]
    for _ in range(depth):
        shares = rng.uniform(0, shape.selectivity, len(level) // shape.fanout)
        above = [f"o{len(operators) + i}" for i in range(len(shares))]
        operators += [
            Operator(
                name, tuple(level[i * shape.fanout : (i + 1) * shape.fanout]), float(shares[i])
            )
            for i, name in enumerate(above)
        ]
        level = above
    return make_tree("tree", sources, tuple(operators), proxy)


def problem_of_trees(hosts: Hosts, trees: Sequence[Tree]) -> tuple[Problem, list[QueryTree]]:
    """One query for each tree; streams are told apart by the number of their tree."""
    names: list[str] = []
    rates: list[float] = []
    homes: list[int] = []
    operators: list[tuple[str, list[int], int, int]] = []
    found = []
    for number, tree in enumerate(trees):
        first = len(names)
        streams = [first + node for node in range(tree.root)]
        of_node = np.full(len(tree), NONE, np.int32)
        for node in range(tree.root):
            names.append(f"{number}.{tree.names[node]}")
            rates.append(float(tree.rate_bps[node]))
            homes.append(NONE if tree.inputs[node] else int(tree.pinned[node]))
            if tree.inputs[node]:
                of_node[node] = len(operators)
                below = [first + i for i in tree.inputs[node]]
                operators.append((names[-1], below, first + node, int(tree.pinned[node])))
        found.append(QueryTree(number, tree, ints([*streams, streams[-1]]), ints(of_node)))
    nothing = floats(np.zeros(len(operators)))
    problem = Problem(
        hosts,
        Streams(tuple(names), floats(rates), ints(homes)),
        Operators(
            tuple(name for name, _, _, _ in operators),
            ragged(below for _, below, _, _ in operators),
            ints(output for _, _, output, _ in operators),
            nothing,
            nothing,
            ints(pinned for _, _, _, pinned in operators),
        ),
        Queries(
            tuple(f"q{number}" for number in range(len(trees))),
            ints(int(one.streams[-1]) for one in found),
            ints(tree.proxy for tree in trees),
            floats(tree.bound_ms for tree in trees),
        ),
    )
    return problem, found


def unlimited(latency_ms: Floats) -> Hosts:
    """Hosts that only differ by where they are."""
    room = floats(np.full(len(latency_ms), inf))
    return Hosts(tuple(f"h{i}" for i in range(len(room))), room, room, room, None, latency_ms)
