"""Randomness by index: the n-th value of a column is a pure function of (seed, column, n).

So a stream can be drawn in pieces of any size, from any offset, and two streams of one world can
look at each other's values without drawing them first. The mixing is SplitMix64's finaliser.
"""

from __future__ import annotations

import math
import zlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def uniform(seed: int, column: str, index: Ints) -> Floats:
    """Numbers in [0, 1), independent between columns and seeds."""
    key = np.uint64(zlib.crc32(column.encode()) << 32 | 0x5BD1)
    with np.errstate(over="ignore"):
        key = _mix(np.asarray([seed & 0xFFFFFFFFFFFFFFFF], np.uint64) + key * _GOLDEN)
        bits = _mix(index.astype(np.uint64) * _GOLDEN + key)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(seed: int, column: str, index: Ints) -> Floats:
    """Standard normal numbers, by Box and Muller."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform(seed, column + "/radius", index)))
    return radius * np.cos(2.0 * math.pi * uniform(seed, column + "/angle", index))


def zipf(skew: float, size: Ints | int, chosen: Floats) -> Ints:
    """Ranks 0 … size-1, rank r with a share close to (r + 1)^-skew; `chosen` is uniform.

    Inverts the distribution's continuous form, so that `size` may differ from row to row.
    """
    top = np.asarray(size, np.float64) + 1.0
    if abs(skew - 1.0) < 1e-9:
        rank = np.exp(np.log(top) * chosen)
    else:
        exponent = 1.0 - skew
        rank = np.power((np.power(top, exponent) - 1.0) * chosen + 1.0, 1.0 / exponent)
    return np.minimum(rank.astype(np.int64) - 1, np.asarray(size, np.int64) - 1)


def between(low: int, high: int, chosen: Floats) -> Ints:
    """Integers low … high, both included; `chosen` is uniform."""
    return low + (chosen * (high - low + 1)).astype(np.int64)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
