"""Rows per second, as a budget that fills up steadily. Pure: the time comes in."""

from __future__ import annotations


class Budget:
    """Holds what may be spent within `burst_s`. A batch may exceed what is there, and those after
    it then wait until the debt is paid: on average the rate holds, whatever the batches' size."""

    __slots__ = ("_at_s", "_burst", "_left", "_rate")

    def __init__(self, rows_per_s: float | None, *, burst_s: float = 1.0) -> None:
        self._rate = rows_per_s
        self._burst = 0.0 if rows_per_s is None else rows_per_s * burst_s
        self._left = self._burst
        self._at_s: float | None = None

    def take(self, rows: int, now_s: float) -> float:
        """0: taken. Otherwise nothing is, and so many seconds are to be waited (inf: for ever)."""
        if self._rate is None or rows == 0:
            return 0.0
        if self._rate == 0:
            return float("inf")
        if self._at_s is not None:
            passed_s = max(0.0, now_s - self._at_s)
            self._left = min(self._burst, self._left + passed_s * self._rate)
        self._at_s = now_s if self._at_s is None else max(self._at_s, now_s)
        if self._left > 0 and (rows <= self._left or self._left >= self._burst):
            self._left -= rows
            return 0.0
        missing = min(rows, self._burst) - self._left
        return missing / self._rate
