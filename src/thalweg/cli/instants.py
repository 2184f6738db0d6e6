"""Instants as people write them: numbers, or dates and times, as the query's streams have them."""

from __future__ import annotations

from typing import Any

from thalweg.plan.moments import moment_text

BEGINNING = -(1 << 62)  # before all instants
_YEAR_1_US = -62_135_596_800_000_000


class Instants:
    """`of` is a query or stream as the service describes it."""

    def __init__(self, of: dict[str, Any]) -> None:
        self._resolution_us = of["resolution_us"] if of["is_temporal"] else None
        self._first = _YEAR_1_US // of["resolution_us"]

    def text(self, instant: int) -> str:
        if instant == self._first or instant <= BEGINNING:
            return "the beginning"  # from which on a table's first rows hold
        if self._resolution_us is None:
            return str(instant)
        return moment_text(instant, self._resolution_us)
