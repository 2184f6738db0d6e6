"""An outside partitioner as a yardstick: METIS on each query's strongest overlaps.

The graph of all overlaps does not fit anywhere, so every query keeps its edges to the few others
with which it shares most. METIS cuts that into as many parts as there are providers, within the
same load bound. As it knows of no distances, parts are then assigned to providers by a heuristic
for quadratic assignment (FAQ), so that those which share much stand near one another.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import quadratic_assignment
from scipy.sparse import coo_array

from thalweg.placement.arrays import Ints, floats, ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.model import Sparse
from thalweg.placement.cosmos.system import Settings, System

STRONGEST = 12  # overlaps that a query keeps
_AT_ONCE = 500  # queries whose overlaps with all others are in memory at the same time


def is_available() -> bool:
    try:
        import pymetis  # noqa: F401
    except ImportError:
        return False
    return True


def partitioned(system: System, settings: Settings) -> Ints:
    """The provider of each query, by METIS and FAQ; load may differ by the same slack."""
    import pymetis

    parts = len(system.network)
    edges = strongest(system.queries.interests, system.substreams.rate_bps)
    share = system.network.capability / system.network.capability.sum()
    options = pymetis.Options(ufactor=max(1, int(1000 * settings.balance.slack)), seed=1)
    weight = np.maximum(1, np.round(system.queries.weight / system.queries.weight.max() * 1e4))
    _, part = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(edges.indptr, edges.indices),
        vweights=weight.astype(int).tolist(),
        eweights=np.maximum(1, np.round(edges.data)).astype(int).tolist(),
        tpwgts=share.tolist(),
        recursive=False,
        options=options,
    )
    return assigned(system, ints(np.asarray(part)))


def strongest(interests: Sparse, rate_bps: np.ndarray) -> Sparse:
    """Every query's heaviest edges, made symmetric."""
    scaled = interests.astype(np.float32)
    scaled.data = scaled.data * np.sqrt(rate_bps).astype(np.float32)[scaled.indices]
    others = scaled.T.tocsr()
    count = scaled.shape[0]
    kept = min(STRONGEST, max(1, count - 1))
    rows, columns, weights = [], [], []
    for first in range(0, count, _AT_ONCE):
        block = (scaled[first : first + _AT_ONCE] @ others).toarray()
        mine = np.arange(len(block))
        block[mine, first + mine] = -1.0
        best = np.argpartition(-block, kept - 1, axis=1)[:, :kept]
        rows.append(np.repeat(first + mine, kept))
        columns.append(best.ravel())
        weights.append(np.take_along_axis(block, best, axis=1).ravel())
    graph = coo_array(
        (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))),
        shape=(count, count),
    ).tocsr()
    both = graph.maximum(graph.T)
    both.data = np.maximum(both.data, 0)
    both.eliminate_zeros()
    return both


def assigned(system: System, part: Ints) -> Ints:
    """Parts to providers, one each, with a small sum of overlaps × latencies."""
    parts = len(system.network)
    wanting = counts(system.queries.interests, part, parts)
    shared = (wanting * system.substreams.rate_bps.astype(np.float32)) @ wanting.T
    np.fill_diagonal(shared, 0.0)
    scale = float(shared.max()) or 1.0
    found = quadratic_assignment(
        floats(shared / scale),
        system.network.latency_ms,
        options={"rng": np.random.default_rng(1), "maxiter": 60},
    )
    return ints(found.col_ind[part])
