"""Hopping windows whose bounds are columns: a tuple is a row for each window that it is in."""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import TS, E, T, W, name
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import Bounds, HopWindow

# Years 1 to 9999, as everywhere; bounds beyond them are NULL.
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def in_each_window(
    frame: pl.DataFrame, window: HopWindow, low: int, high: int, place: int
) -> pl.DataFrame:
    """Stream rows as interval rows with bounds, of the windows whose end is in [low, high).

    The bounds are columns from `place` on: some before them may not be there.
    """
    stamps = frame[TS].to_numpy()
    slide = window.slide
    first = np.maximum(stamps // slide + 1, -(-low // slide))
    last = np.minimum((stamps + window.length) // slide, (high - 1) // slide)
    count = np.maximum(last - first + 1, 0)
    row = np.repeat(np.arange(len(stamps)), count)
    before = np.cumsum(count) - count
    within = np.arange(len(row)) - np.repeat(before, count)
    ends = pl.Series(T, (first[row] + within) * slide, dtype=pl.Int64)
    columns = [c for c in frame.columns if c.startswith("c")]
    weight = frame[W][row] if W in frame.columns else pl.Series(W, np.ones(len(row), np.int64))
    rows = frame[columns][row].hstack([ends, weight])
    assert window.bounds is not None
    return rows.select(
        *columns,
        *bounds(window.bounds, pl.col(T) - window.length, pl.col(T), place),
        T,
        (pl.col(T) + slide).alias(E),
        W,
    )


def bounds(of: Bounds, start: pl.Expr, end: pl.Expr, place: int) -> list[pl.Expr]:
    """A window's first instant and the one behind its last as values, columns from `place` on."""
    return [_value(of, start).alias(name(place)), _value(of, end).alias(name(place + 1))]


def _value(of: Bounds, instant: pl.Expr) -> pl.Expr:
    if of.type == BIGINT:
        return instant
    unit = of.resolution_us
    inside = instant.is_between(-(-_EARLIEST_US // unit), _LATEST_US // unit)
    return (pl.when(inside).then(instant) * unit).cast(pl.Datetime("us"))
