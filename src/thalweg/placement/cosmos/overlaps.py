"""Edges between the q-vertices of one coordinator: the rates of what both ends want.

Only a coordinator's own graph of some hundred or thousand vertices is ever spelt out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats
from thalweg.placement.cosmos.model import Sparse, summed

Edges = npt.NDArray[np.float32]  # [vertex, vertex], symmetric, nothing on the diagonal

_DENSE_GAIN = 200.0  # a dense product does so many steps in the time of one sparse step


def overlaps(interests: Sparse, rate_bps: Floats) -> Edges:
    """The exact weights, by whichever product is quicker: that of sparse or of dense rows."""
    vertices, substreams = interests.shape
    scaled = interests.astype(np.float32)
    scaled.data = scaled.data * np.sqrt(rate_bps).astype(np.float32)[scaled.indices]
    wanting = np.bincount(scaled.indices, minlength=substreams)
    sparse_steps = float((wanting.astype(float) ** 2).sum())
    if sparse_steps * _DENSE_GAIN < vertices**2 * substreams:
        edges: Edges = (scaled @ scaled.T).toarray()
    else:
        rows = scaled.toarray()
        edges = rows @ rows.T
    np.fill_diagonal(edges, 0.0)
    return edges


def collapsed(edges: Edges, into: npt.NDArray[np.integer], count: int) -> Edges:
    """The edges between coarse vertices: sums of those between their parts."""
    halfway = np.ascontiguousarray(summed(edges, into, count).T)
    found: Edges = summed(halfway, into, count)
    np.fill_diagonal(found, 0.0)
    return found
