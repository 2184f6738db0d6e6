"""Edges between the q-vertices of one coordinator: the rates of what both ends want.

Only a coordinator's own graph of some hundred or thousand vertices is ever spelt out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats
from thalweg.placement.cosmos.model import Sparse

Edges = npt.NDArray[np.float32]  # [vertex, vertex], symmetric, nothing on the diagonal

_DENSE_GAIN = 60.0  # a dense product does so many steps in the time of one sparse step


def overlaps(interests: Sparse, rate_bps: Floats) -> Edges:
    """The exact weights, by whichever product is quicker: that of sparse or of dense rows."""
    vertices = interests.shape[0]
    wanting = np.bincount(interests.indices, minlength=interests.shape[1])
    shared = np.flatnonzero(wanting > 1)
    scaled = interests[:, shared].astype(np.float32)
    scaled.data *= np.sqrt(rate_bps[shared]).astype(np.float32)[scaled.indices]
    sparse_steps = float((wanting[shared].astype(float) ** 2).sum())
    if sparse_steps * _DENSE_GAIN < vertices**2 * len(shared):
        edges: Edges = (scaled @ scaled.T).toarray()
    else:
        rows = scaled.toarray()
        edges = rows @ rows.T
    np.fill_diagonal(edges, 0.0)
    return edges


def collapsed(edges: Edges, into: npt.NDArray[np.integer], count: int) -> Edges:
    """The edges between coarse vertices: sums of those between their parts."""
    order = np.argsort(into, kind="stable")
    starts = np.searchsorted(into[order], np.arange(count))
    rows = np.add.reduceat(edges[order], starts, axis=0)
    found: Edges = np.add.reduceat(rows[:, order], starts, axis=1)
    np.fill_diagonal(found, 0.0)
    return found
