"""Queries for the scenario of SAND's placement."""

from __future__ import annotations

from math import inf

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.query import ALGORITHMS, TreeNode, TreeQuery
from thalweg.placement.arrays import NONE

_Part = tuple[str, float, Address | None, list[int]]  # name, rate, pinned host, inputs


def draw_query(name: str, hosts: list[Address], generator: Generator) -> TreeQuery:
    """A random tree of one to five sources at random hosts, by any algorithm and zone size."""
    nodes: list[_Part] = []
    for i in range(generator.between(1, 5)):
        rate = float(generator.between(1, 9))
        nodes.append((f"s{i}", rate, generator.choice(hosts), []))
    loose = list(range(len(nodes)))
    while len(loose) > 1 or len(nodes) == 1:
        taken = [loose.pop(0) for _ in range(min(len(loose), generator.between(1, 3)))]
        rate = sum(nodes[i][1] for i in taken) * generator.choice((0.2, 0.7, 1.5))
        nodes.append((f"o{len(nodes)}", rate, None, taken))
        loose.append(len(nodes) - 1)
    nodes.append(("proxy", 0.0, generator.choice(hosts), loose))
    # A bound that any way meets: that distances are measured is what matters here.
    bound_ms = generator.choice((inf, 5_000.0))
    algorithm = generator.choice(ALGORITHMS)
    return _query(name, nodes, algorithm, generator.between(1, 2), bound_ms)


def balanced(name: str, proxy: Address, sources: list[Address]) -> TreeQuery:
    """For scripts: Edge over a binary tree, each operator giving half of what it takes."""
    nodes: list[_Part] = [(f"s{i}", 8.0, host, []) for i, host in enumerate(sources)]
    level = list(range(len(nodes)))
    while len(level) > 1 or len(nodes) == len(sources):
        above = []
        for at in range(0, len(level), 2):
            taken = level[at : at + 2]
            rate = sum(nodes[i][1] for i in taken) / 2
            nodes.append((f"o{len(nodes) - len(sources)}", rate, None, taken))
            above.append(len(nodes) - 1)
        level = above
    nodes.append(("proxy", 0.0, proxy, level))
    return _query(name, nodes, "edge", 1)


def _query(
    name: str,
    nodes: list[_Part],
    algorithm: str,
    levels: int,
    bound_ms: float = inf,
) -> TreeQuery:
    parent = {i: taker for taker, (_, _, _, inputs) in enumerate(nodes) for i in inputs}
    return TreeQuery(
        name,
        tuple(
            TreeNode(label, parent.get(i, NONE), rate, pinned)
            for i, (label, rate, pinned, _) in enumerate(nodes)
        ),
        bound_ms=bound_ms,
        algorithm=algorithm,
        k=2,
        levels=levels,
    )
