"""Members of a family that say so much that tasks sort and encode it.

The driver looks at one column only, which says whose the rows are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl


def large_members(frames: Sequence[pl.DataFrame], column: str, least: int) -> dict[int, int]:
    """Of members, by their places, that have at least so many rows: how many they have."""
    counts = [np.bincount(f[column].to_numpy()) for f in frames if f.height]
    total = np.zeros(max(map(len, counts), default=0), np.int64)
    for count in counts:
        total[: len(count)] += count
    return {int(m): int(total[m]) for m in np.flatnonzero(total >= least)}


def without(
    frames: Sequence[pl.DataFrame], column: str, members: Collection[int]
) -> list[pl.DataFrame]:
    """The rows of all others."""
    if not members:
        return list(frames)
    gone = np.array(sorted(members))
    return [f.filter(pl.Series(~np.isin(f[column].to_numpy(), gone))) for f in frames]
