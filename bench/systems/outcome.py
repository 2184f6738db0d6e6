"""What a system tells about a run, and why there may be nothing to tell."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import polars as pl

SAID = {"query": pl.String, "rows": pl.Int64, "items": pl.Int64}


class Unable(Exception):
    """Why a system has no outcome: it is not here, it failed, or its time was over."""


@dataclass(frozen=True)
class Outcome:
    """One run over all events; `said` has for each query its rows and the sum of their items."""

    start_s: float  # from the queries' text to a system that runs them
    seconds: float
    cpu_s: float
    said: pl.DataFrame
    ticks: tuple[float, ...] = ()  # seconds of each, where there are ticks
    groups: int | None = None
    peak_bytes: int = 0

    def median_tick_s(self, settled: int) -> float:
        """Of the ticks from that number on, when windows are full; of the last where there is
        none."""
        return median(self.ticks[settled:] or self.ticks[-1:])


def as_said(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Queries that said something, in order of name: equal frames mean equal counts and sums."""
    said = pl.concat([pl.DataFrame(schema=SAID), *(p.cast(SAID) for p in parts)])  # type: ignore[arg-type]
    return said.filter(pl.col("rows") > 0).sort("query")
