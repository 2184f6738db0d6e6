"""Trees and networks that several tests start from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from thalweg.placement.arrays import Floats
from thalweg.placement.sand.configurations import Ways
from thalweg.placement.sand.parts import Operator, Source, make_tree
from thalweg.placement.sand.tree import Tree


def line(*places: float) -> Ways:
    """Hosts on a line: distances that can be added up in the head."""
    at = np.array(places, float)
    distance = np.abs(at[:, None] - at[None, :])
    return Ways(distance, distance)


@dataclass(frozen=True)
class Drawn:
    tree: Tree
    ways: Ways

    def bounded(self, bound_ms: float) -> Tree:
        return replace(self.tree, bound_ms=bound_ms)


def grow(rng: np.random.Generator, hosts: int, sources: int, pins: float) -> Tree:
    """A random shape: parts are taken together, one to three at a time, until one is left."""
    leaves = tuple(
        Source(f"s{i}", float(rng.integers(1, 10)), int(rng.integers(hosts)))
        for i in range(sources)
    )
    operators: list[Operator] = []
    growth = float(rng.choice([0.5, 1.0, 4.0]))  # joins may give more than they take
    loose = [leaf.name for leaf in leaves]
    while len(loose) > 1 or not operators:
        taken = [
            loose.pop(int(rng.integers(len(loose))))
            for _ in range(min(len(loose), 1 + int(rng.integers(3))))
        ]
        pinned = int(rng.integers(hosts)) if rng.random() < pins else None
        name = f"o{len(operators)}"
        operators.append(Operator(name, tuple(taken), float(rng.uniform(0, growth)), pinned))
        loose.append(name)
    return make_tree("t", leaves, tuple(operators), int(rng.integers(hosts)))


@st.composite
def drawn(
    draw: st.DrawFn, *, most_hosts: int = 6, most_sources: int = 5, metric: bool | None = None
) -> Drawn:
    """A tree on a network; without a metric, a detour may be shorter than the straight way."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hosts = draw(st.integers(1, most_hosts))
    pins = draw(st.sampled_from([0.0, 0.0, 0.3]))
    tree = grow(rng, hosts, draw(st.integers(1, most_sources)), pins)
    if draw(st.booleans()) if metric is None else metric:
        places = rng.random((hosts, 2)) * 100
        distance: Floats = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    else:
        distance = rng.integers(0, 50, (hosts, hosts)).astype(float)
        np.fill_diagonal(distance, 0.0)
    return Drawn(tree, Ways(distance, distance))
