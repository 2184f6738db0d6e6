"""How much load should move between which children, so that none has too much.

Source: COSMOS 3.3.7, after Hu and Blake (1999): of all flows that even out the load, the one whose
Euclidean norm is least. With every child next to every other, it follows potentials λ with
Lλ = excess, L the Laplacian of the graph: m_ij = λ_i − λ_j.

The source evens out load altogether. Here a child has too much only above its limit: whatever moves
costs a migration, and below the limit nothing is gained by it.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import Floats


def excess(load: Floats, limits: Floats) -> Floats:
    """What each child has too much; negative for what it takes of the others', by its room."""
    over = np.maximum(load - limits, 0.0)
    room = np.maximum(limits - load, 0.0)
    moving = min(float(over.sum()), float(room.sum()))
    if moving <= 0:
        return np.zeros(len(load))
    found: Floats = over * (moving / over.sum()) - room * (moving / room.sum())
    return found


def diffusion(surplus: Floats) -> Floats:
    """[from, to]: the flows of least norm; what a child sends less what it gets is its surplus."""
    count = len(surplus)
    laplacian = count * np.eye(count) - np.ones((count, count))
    potential = np.linalg.lstsq(laplacian, surplus, rcond=None)[0]
    return np.maximum(potential[:, None] - potential[None, :], 0.0)
