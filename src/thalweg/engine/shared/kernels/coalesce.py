"""Interval rows with what cancels taken out, and what follows on each other joined.

Where a value changes at every instant, a relation's delta has a row of weight +1 from each change
on and one of -1 from the next, all without an end: whatever meets one of them meets the other, and
as many rows are computed as there are pairs of changes. Coalesced, each value has the rows over
which it is really there.
"""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.frames import E, T, W

_TAIL = "_tail"


def coalesced(rows: pl.DataFrame, high: int) -> pl.DataFrame:
    """The same relation up to `high`, in which no row begins at or after it.

    Rows that end later keep their ends, by which they are told apart.
    """
    columns = [c for c in rows.columns if c not in (T, E, W)]
    tail = pl.when(pl.col(E) >= high).then(E).alias(_TAIL)
    starts = rows.select(*columns, tail, T, W)
    ends = rows.filter(pl.col(E) < high).select(
        *columns, pl.lit(None, dtype=pl.Int64).alias(_TAIL), pl.col(E).alias(T), -pl.col(W)
    )
    key = [*columns, _TAIL]
    steps = pl.concat([starts, ends]).group_by([*key, T]).agg(pl.col(W).sum())
    steps = steps.filter(pl.col(W) != 0).sort(T)
    # Groups keep the order of their rows.
    runs = steps.group_by(key).agg(
        pl.col(T), pl.col(T).shift(-1).alias(E), pl.col(W).cum_sum().alias(W)
    )
    there = runs.explode(T, E, W).filter(pl.col(W) != 0)
    return there.with_columns(pl.coalesce(E, _TAIL).alias(E)).select(rows.columns)


def without_retractions(delta: pl.DataFrame, high: int) -> pl.DataFrame:
    """A delta in which what is taken back within the tick has its end instead."""
    return coalesced(delta, high) if (delta[W] < 0).any() else delta
