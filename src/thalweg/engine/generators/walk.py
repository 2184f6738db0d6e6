"""A Gaussian random walk that can be entered anywhere.

The value at a whole step is found by halving a long span again and again: given both ends of a
Brownian path, its middle is their mean plus a normal number of a quarter of the span's variance.
So a value costs a few dozen draws instead of the whole past, and is the same however one got there.
"""

from __future__ import annotations

import math

import numpy as np

from thalweg.engine.generators.noise import Floats, normal

LEVELS = 32  # the walk has 2^32 whole steps


def walk_at(seed: int, path: str, step: int) -> float:
    """The path's value at a whole step; it starts at 0, and each step has variance 1."""
    if not 0 <= step <= 1 << LEVELS:
        raise ValueError(f"a walk has steps 0 to 2^{LEVELS}, not {step}")
    low, high = 0, 1 << LEVELS
    low_value, high_value = 0.0, math.sqrt(high) * _draw(seed, path, 0)
    node = 1  # numbered as in a heap, so that every middle has its own number
    while low < step < high:
        middle = (low + high) // 2
        spread = math.sqrt((high - low) / 4)
        value = (low_value + high_value) / 2 + spread * _draw(seed, path, node)
        if step < middle:
            high, high_value, node = middle, value, 2 * node
        else:
            low, low_value, node = middle, value, 2 * node + 1
    return low_value if step == low else high_value


def bridge(times: Floats, draws: Floats, start: float, end: float) -> Floats:
    """The path at increasing times within one step (0 to 1), given its values at both ends.

    `draws` are normal numbers: one for each time, and one for the way from the last to the end.
    """
    free = np.cumsum(draws * np.sqrt(np.diff(times, prepend=0.0, append=1.0)))
    return start + free[:-1] + times * (end - start - free[-1])


def _draw(seed: int, path: str, node: int) -> float:
    return float(normal(seed, path, np.asarray([node], np.int64))[0])
