"""Running sums per key over the instants of a tick, starting from what is stored.

This is how every operator with memory works: group the tick's events by (key, instant), put what
is stored in front, and add up along time. The tick's own sum is appended to the stored table.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import H, T, W
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.task import Task

FIRST = -(1 << 63)  # where stored sums stand: before every instant


def running_sums(
    task: Task, table: str, changes: pl.DataFrame, keys: list[str], sums: list[str]
) -> pl.DataFrame:
    """Per key and instant: `<sum>_before` and `<sum>_after`, for each of the sums.

    Keys may be NULL (and are then equal, as in GROUP BY). Sorted by key, then instant.
    """
    grouped = changes.group_by([*keys, T]).agg(pl.col(s).sum() for s in sums)
    grouped = with_hash(grouped, [pl.col(k) for k in keys])
    stored = stored_sums(task, table, grouped[H], keys, sums)
    append_sums(task, table, grouped, keys, sums)
    steps = along_time(grouped, stored, keys)
    group = keys or [H]
    before = [pl.col(s).shift(1).over(group).fill_null(0).alias(f"{s}_before") for s in sums]
    steps = steps.with_columns(before).filter(pl.col(T) > FIRST)
    return steps.rename({s: f"{s}_after" for s in sums})


def along_time(grouped: pl.DataFrame, stored: pl.DataFrame | None, keys: list[str]) -> pl.DataFrame:
    """Sums up to and including each instant; stored sums stand as a step at FIRST."""
    sums = [c for c in grouped.columns if c not in (*keys, T, H)]
    if stored is not None:
        first = stored.with_columns(pl.lit(FIRST, dtype=pl.Int64).alias(T))
        grouped = pl.concat([first, grouped], how="diagonal")
        sums = [c for c in grouped.columns if c not in (*keys, T, H)]
        grouped = grouped.with_columns(pl.col(s).fill_null(0) for s in sums)
    ordered = grouped.sort(H, *keys, T, nulls_last=False)
    return ordered.with_columns(pl.col(s).cum_sum().over(keys or [H]) for s in sums)


def appearances(task: Task, table: str, values: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """When a row of these columns first appears (+1) and when its last copy goes (-1)."""
    steps = running_sums(task, table, values, columns, [W])
    change = (pl.col(f"{W}_after") > 0).cast(pl.Int64) - (pl.col(f"{W}_before") > 0).cast(pl.Int64)
    return steps.select(*columns, T, change.alias(W)).filter(pl.col(W) != 0)


def stored_sums(
    task: Task, table: str, hashes: pl.Series, keys: list[str], sums: list[str]
) -> pl.DataFrame | None:
    """What the table says of the keys with these hashes, one row per key."""
    found = tables.find(task.stored(table), np.unique(hashes.to_numpy()))
    if found is None:
        return None
    return found.group_by([*keys, H]).agg(pl.col(s).sum() for s in sums)


def append_sums(
    task: Task, table: str, grouped: pl.DataFrame, keys: list[str], sums: list[str]
) -> None:
    total = grouped.group_by([*keys, H], maintain_order=True).agg(pl.col(s).sum() for s in sums)
    kept = total.filter(pl.any_horizontal(pl.col(s) != 0 for s in sums))
    if kept.height:
        tables.append(task, table, kept, tables.merge_by([*keys, H], sums))
