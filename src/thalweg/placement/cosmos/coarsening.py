"""Coarsening a query graph by heavy edges (COSMOS, Algorithm 3.1).

Vertices with heavy edges between them will probably be mapped to the same place, so they collapse
first. What the algorithm leaves open is settled here:

- No vertex grows beyond a limit: one that is too heavy for any place could not be mapped.
- A q-vertex does not collapse into an n-vertex: that would pin it, whatever the load bound says.
  n-vertices of one child cluster act as one anyway, as they have the same distance to everything.
- Who has no neighbour left collapses with a vertex that it has nothing in common with, or stays
  as it is where all others would grow too heavy. A round without a match ends the coarsening.
- Where vertices stand somewhere already, only those of one place collapse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from thalweg.placement.arrays import Flags, Floats, Ints, floats, ints
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.overlaps import Edges, collapsed, overlaps

_HEAVIEST = 1.5  # a coarse vertex, against the mean


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    vertices: Vertices
    into: Ints  # finer vertex -> coarse vertex


def coarsen(
    vertices: Vertices,
    substreams: Substreams,
    most: int,
    rng: Generator,
    *,
    place: Ints | None = None,
) -> Coarse:
    """At most `most` vertices, or as few as the limit on their weight allows."""
    if most < 1:
        raise ValueError("a query graph has at least one vertex")
    into = np.arange(len(vertices))
    count = len(vertices)
    if count <= most:
        return Coarse(vertices, ints(into))
    weight: Floats = np.array(vertices.weight)
    heaviest = max(_HEAVIEST * weight.sum() / most, weight.max())
    at = np.zeros(count, np.int32) if place is None else place
    edges = overlaps(vertices.interests, substreams.rate_bps)
    while count > most:
        partner = _matched(edges, weight, at, heaviest, count - most, rng)
        first = np.minimum(partner, np.arange(count))
        kept, pair = np.unique(first, return_inverse=True)
        if len(kept) == count:
            break
        edges = collapsed(edges, pair, len(kept))
        weight, at = floats(np.bincount(pair, weight)), at[kept]
        into, count = pair[into], len(kept)
    return Coarse(vertices.merged(into, count), ints(into))


def _matched(
    edges: Edges, weight: Floats, at: Ints, heaviest: float, wanted: int, rng: Generator
) -> npt.NDArray[np.int64]:
    """One round: each vertex's partner, or itself; no more than `wanted` pairs."""
    partner = np.arange(len(weight))
    free: Flags = np.ones(len(weight), bool)
    for u in rng.permutation(len(weight)).tolist():
        if not free[u]:
            continue
        free[u] = False  # matched, or without a partner for this round
        fits = free & (weight <= heaviest - weight[u]) & (at == at[u])
        v = int(np.argmax(np.where(fits, edges[u], -1.0)))
        if fits[v]:
            free[v] = False
            partner[u], partner[v] = v, u
            wanted -= 1
            if not wanted:
                break
    return partner
