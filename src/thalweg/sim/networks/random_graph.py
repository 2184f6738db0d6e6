"""A connected random graph over points of the plane: what transit-stub networks are built of."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Points = NDArray[np.float64]
Pairs = list[tuple[int, int]]


def random_graph(
    nodes: NDArray[np.integer], at: Points, probability: float, rng: Generator
) -> Pairs:
    """Each pair with this probability; then the nearest nodes of parts that are still apart."""
    names = [int(n) for n in nodes]
    rows, columns = np.triu_indices(len(names), 1)
    drawn = rng.random(len(rows)) < probability
    links = [(names[i], names[j]) for i, j in zip(rows[drawn], columns[drawn], strict=True)]
    part = {n: n for n in names}

    def root(n: int) -> int:
        while part[n] != n:
            n = part[n]
        return n

    for a, b in links:
        part[root(a)] = root(b)
    apart = [(names[i], names[j]) for i, j in zip(rows[~drawn], columns[~drawn], strict=True)]
    apart.sort(key=lambda ab: (float(np.sum((at[ab[0]] - at[ab[1]]) ** 2)), ab))
    for a, b in apart:
        if root(a) != root(b):
            part[root(a)] = root(b)
            links.append((a, b))
    return links
