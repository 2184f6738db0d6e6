"""Places in the plane for hosts of which only the latencies are known.

Classical scaling (Torgerson): the two directions in which the squared distances, centred, vary
most. Hosts that are near each other in latency come out near each other.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import Floats


def positions(latency_ms: Floats) -> Floats:
    """(hosts, 2), as wide as the distances are; which way round is fixed by the first host."""
    count = len(latency_ms)
    if count < 2:
        return np.zeros((count, 2))
    known = np.isfinite(latency_ms)
    farthest = float(latency_ms[known].max(initial=0.0))
    distance = np.where(known, latency_ms, 2 * farthest)  # no way: farther off than anything
    squared = ((distance + distance.T) / 2) ** 2
    np.fill_diagonal(squared, 0.0)
    middle = squared.mean(axis=0)
    inner = -0.5 * (squared - middle[:, None] - middle[None, :] + middle.mean())
    values, vectors = np.linalg.eigh(inner)
    found = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    # An eigenvector's sign is a matter of chance: the entry that is largest counts as positive.
    largest = found[np.abs(found).argmax(axis=0), [0, 1]]
    return np.asarray(found * np.where(largest < 0, -1.0, 1.0), float)
