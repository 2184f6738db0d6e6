"""What a system would need for more queries than it was given time for."""

from __future__ import annotations

from collections.abc import Mapping


def linear(seconds: Mapping[int, float], queries: int) -> float | None:
    """Along the line through the two largest measured; None where there are fewer.

    One run alone does not tell what a query costs from what comes only once. A line that falls
    (noise) is taken as level, which favours the system.
    """
    if len(seconds) < 2:
        return None
    low, high = sorted(seconds)[-2:]
    slope = max(0.0, (seconds[high] - seconds[low]) / (high - low))
    return seconds[high] + slope * (queries - high)
