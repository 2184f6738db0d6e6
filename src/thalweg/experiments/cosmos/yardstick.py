"""An outside partitioner as a yardstick: METIS, with all that the hierarchy knows.

The graph of all overlaps does not fit anywhere, so every query keeps its edges to those with which
it shares most. METIS cuts that into as many parts as there are providers, within the same load
bound. As it knows of no distances, parts are then assigned to providers by a heuristic for
quadratic assignment (FAQ) and by swaps that pay for the ways to sources and proxies too; in the
end comes the same last pass over all queries.

`without_hierarchy` is Algorithm 3.2 by one node, over parts of METIS instead of the hierarchy's own
coarse graph.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import quadratic_assignment
from scipy.sparse import coo_array

from thalweg.placement.arrays import Ints, floats, ints
from thalweg.placement.cosmos.cost import counts
from thalweg.placement.cosmos.local_search import sweep
from thalweg.placement.cosmos.model import Sparse
from thalweg.placement.cosmos.overflow import within_bound
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.view import decide, global_view

STRONGEST = 48  # overlaps that a query keeps
FEWER = 12  # those that it keeps where parts are only to be coarse vertices
FINER = 6  # times v_max: as fine as the graph that `centralised` gets from the hierarchy
_ROUNDS = 20  # of swaps, each over all pairs of parts
_AT_ONCE = 500  # queries whose overlaps with all others are in memory at the same time


def is_available() -> bool:
    try:
        import pymetis  # noqa: F401
    except ImportError:
        return False
    return True


def informed(system: System, settings: Settings) -> Ints:
    """The provider of each query, by METIS, FAQ, swaps and the hierarchy's last pass."""
    share = system.network.capability / system.network.capability.sum()
    part = parted(system, settings, share, STRONGEST)
    found = swapped(system, part, assigned(system, part), settings)
    found = within_bound(system, found, settings.balance)
    seen = global_view(system, settings.balance)
    return sweep(system.queries, system.substreams, seen, found, passes=1)


def without_hierarchy(system: System, settings: Settings) -> Ints:
    """Algorithm 3.2 over all providers at once, then over all queries: no tree has a part in it."""
    count = min(FINER * settings.most_vertices, len(system.queries) // 2)
    part = parted(system, settings, np.full(count, 1 / count), FEWER)
    seen = global_view(system, settings.balance)
    mapping = decide(system.queries.merged(part, count), system.substreams, seen)
    return sweep(system.queries, system.substreams, seen, ints(mapping[part]), passes=20)


def parted(system: System, settings: Settings, share: np.ndarray, kept: int) -> Ints:
    """METIS: as many parts as there are shares of the load."""
    import pymetis

    parts = len(share)
    edges = strongest(system.queries.interests, system.substreams.rate_bps, kept)
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
    return ints(np.asarray(part))


def strongest(interests: Sparse, rate_bps: np.ndarray, most: int = STRONGEST) -> Sparse:
    """Every query's heaviest edges, made symmetric."""
    scaled = interests.astype(np.float32)
    scaled.data = scaled.data * np.sqrt(rate_bps).astype(np.float32)[scaled.indices]
    others = scaled.T.tocsr()
    count = scaled.shape[0]
    kept = min(most, max(1, count - 1))
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


def swapped(system: System, part: Ints, mapping: Ints, settings: Settings) -> Ints:
    """Parts change places while that makes the whole cut smaller: overlaps, sources and proxies."""
    count = len(system.network)
    at = np.full(count, -1)
    at[part] = mapping
    at[at < 0] = np.setdiff1d(np.arange(count), at)  # parts without queries
    merged = system.queries.merged(part, count)
    alone = global_view(system, settings.balance).pull(merged)
    wanting = counts(system.queries.interests, part, count)
    shared = (wanting * system.substreams.rate_bps.astype(np.float32)) @ wanting.T
    np.fill_diagonal(shared, 0.0)
    latency = system.network.latency_ms
    for _ in range(_ROUNDS):
        gained = sum(_swap_best(p, at, shared, latency, alone) for p in range(count))
        if gained == 0:
            break
    return ints(at[part])


def _swap_best(
    p: int, at: np.ndarray, shared: np.ndarray, latency: np.ndarray, alone: np.ndarray
) -> bool:
    """Part p changes places with whoever makes the cut smallest; whether that helped."""
    apart = latency[np.ix_(at, at)]
    change = (shared[p] - shared) * (apart - apart[p])
    both = change.sum(axis=1) - change[:, p] - change[np.arange(len(at)), np.arange(len(at))]
    here = alone[np.arange(len(at)), at]
    ways = alone[p, at] + alone[:, at[p]] - alone[p, at[p]] - here
    total = both + ways
    q = int(np.argmin(total))
    if total[q] >= -1e-6 * abs(float(here.sum())) / len(at):
        return False
    at[p], at[q] = at[q], at[p]
    return True
