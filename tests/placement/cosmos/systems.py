"""Small systems to distribute queries over, and the weighted edge cut as equation 3.4 has it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.hierarchy import cluster
from thalweg.placement.cosmos.model import Network, Substreams, Vertices
from thalweg.placement.cosmos.system import System


def system(
    seed: int,
    *,
    providers: int = 9,
    sources: int = 3,
    substreams: int = 30,
    queries: int = 40,
    wanted: int = 6,
    k: int = 2,
    uneven: bool = False,
) -> System:
    """Providers in the plane; queries that want some of a few neighbouring substreams."""
    rng = np.random.default_rng(seed)
    at = rng.random((providers + sources, 2)) * 100
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)
    capability = rng.uniform(0.5, 2.0, providers) if uneven else np.ones(providers)
    network = Network(
        floats(apart[:providers, :providers]),
        floats(apart[providers:, :providers]),
        floats(capability),
    )
    rate = floats(rng.uniform(1, 10, substreams))
    centre = rng.integers(substreams, size=queries)
    near = (centre[:, None] + rng.integers(0, 2 * wanted, (queries, wanted))) % substreams
    interests = np.zeros((queries, substreams), np.float32)
    interests[np.repeat(np.arange(queries), wanted), near.ravel()] = 1
    results = np.zeros((queries, providers))
    results[np.arange(queries), rng.integers(providers, size=queries)] = rng.uniform(0, 3, queries)
    vertices = Vertices(
        csr_array(interests),
        csr_array(results),
        floats(interests @ rate),
        floats(rng.uniform(1, 100, queries)),
    )
    entering = ints(rng.integers(sources, size=substreams))
    return System(network, cluster(network.latency_ms, k), Substreams(rate, entering), vertices)


def proxies(made: System) -> np.ndarray:
    return ints(np.asarray(made.queries.results.todense()).argmax(axis=1))


def cut_by_pairs(made: System, mapping: np.ndarray) -> float:
    """Every edge of the query graph, one by one."""
    interests = np.asarray(made.queries.interests.todense(), float)
    results = np.asarray(made.queries.results.todense())
    rate, source = made.substreams.rate_bps, made.substreams.source
    total = 0.0
    for i, at in enumerate(mapping.tolist()):
        for s in np.flatnonzero(interests[i]).tolist():
            total += interests[i, s] * rate[s] * made.network.source_ms[source[s], at]
        total += float(results[i] @ made.network.latency_ms[at])
    for i, j in combinations(range(len(mapping)), 2):
        both = float((interests[i] * interests[j] * rate).sum())
        total += both * made.network.latency_ms[mapping[i], mapping[j]]
    return total


systems = st.builds(
    system,
    st.integers(0, 10_000),
    providers=st.integers(2, 9),
    queries=st.integers(1, 25),
    uneven=st.booleans(),
)
