"""What a system would need for more queries than it was given time for."""

from __future__ import annotations

from collections.abc import Mapping


def linear(seconds: Mapping[int, float], queries: int) -> float:
    """Along the line through the two largest measured; from one alone, in proportion.

    A line that falls (noise) is taken as level, which favours the system.
    """
    if not seconds:
        raise ValueError("nothing was measured")
    largest = sorted(seconds)[-2:]
    if len(largest) == 1:
        return seconds[largest[0]] * queries / largest[0]
    low, high = largest
    slope = max(0.0, (seconds[high] - seconds[low]) / (high - low))
    return seconds[high] + slope * (queries - high)
