"""MIN and MAX of a group whose values come and go.

State: the multiset of values per group. After k values went, the smallest one left is among the
k + 1 smallest stored or among the new ones; so only those are looked at one by one, in a heap.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import polars as pl

from thalweg.engine.shared.frames import H, T, W
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.task import Task


def extremes(
    task: Task,
    table: str,
    changes: pl.DataFrame,
    steps: pl.DataFrame,
    keys: list[str],
    value: str,
    wanted: list[str],
) -> list[pl.Series]:
    """For each step (group and instant, in order) the least and/or greatest value after it."""
    group = keys or [H]
    moved = changes.filter(pl.col(value).is_not_null())
    moved = moved.group_by([*keys, value, T]).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
    moved = with_hash(moved, [pl.col(k) for k in keys])
    stored = _stored(task, table, steps[H], [*keys, value])
    _append(task, table, moved, [*keys, value])
    numbers = steps.select(*group).unique(maintain_order=True).with_row_index("_group")
    moved = moved.join(numbers, on=group, nulls_equal=True).sort("_group", T)
    if stored is not None:
        stored = stored.join(numbers, on=group, nulls_equal=True)
    order = steps.join(numbers, on=group, how="left", nulls_equal=True, maintain_order="left")
    return [
        pl.Series(
            f"_{side}{value}",
            _walk(order, moved, stored, value, largest=side == "max"),
            dtype=changes.schema[value],
        )
        for side in wanted
    ]


def _stored(task: Task, table: str, hashes: pl.Series, columns: list[str]) -> pl.DataFrame | None:
    found = tables.find(task.stored(table), np.unique(hashes.to_numpy()))
    if found is None:
        return None
    return found.group_by([*columns, H]).agg(pl.col(W).sum()).filter(pl.col(W) > 0)


def _append(task: Task, table: str, moved: pl.DataFrame, columns: list[str]) -> None:
    by = [*columns, H]
    total = moved.group_by(by, maintain_order=True).agg(pl.col(W).sum()).filter(pl.col(W) != 0)
    if total.height:
        tables.append(task, table, total, tables.merge_by(by, [W]))


def _walk(
    order: pl.DataFrame,
    moved: pl.DataFrame,
    stored: pl.DataFrame | None,
    value: str,
    *,
    largest: bool,
) -> list[Any]:
    """Follow each group's values along its instants."""
    ranks = _ranks(moved, stored, value, largest=largest)
    events = moved.join(ranks, on=value).sort("_group", T).select("_group", T, "_rank", W)
    begin = _candidates(stored, moved, ranks, value)
    by_rank = ranks.sort("_rank")[value].to_list()
    changes = iter(events.iter_rows())
    change = next(changes, None)
    result: list[Any] = []
    current, heap, count = -1, [], {}
    for group, instant in order.select("_group", T).iter_rows():
        if group != current:
            current = group
            count = dict(begin.get(group, ()))
            heap = sorted(count)
        while change is not None and change[0] == group and change[1] <= instant:
            _, _, rank, weight = change
            if rank not in count:
                count[rank] = 0
                heapq.heappush(heap, rank)
            elif count[rank] == 0:
                heapq.heappush(heap, rank)
            count[rank] += weight
            change = next(changes, None)
        while heap and count[heap[0]] <= 0:
            heapq.heappop(heap)
        result.append(by_rank[heap[0]] if heap else None)
    return result


def _ranks(
    moved: pl.DataFrame, stored: pl.DataFrame | None, value: str, *, largest: bool
) -> pl.DataFrame:
    """Values numbered in the order in which they win: plain numbers are quick to compare."""
    values = (
        moved.select(value)
        if stored is None
        else pl.concat([moved.select(value), stored.select(value)])
    )
    return values.unique().sort(value, descending=largest).with_row_index("_rank")


def _candidates(
    stored: pl.DataFrame | None, moved: pl.DataFrame, ranks: pl.DataFrame, value: str
) -> dict[int, list[tuple[int, int]]]:
    """Per group the stored values that can become the extreme in this tick, with their counts."""
    if stored is None:
        return {}
    gone = moved.filter(pl.col(W) < 0).group_by("_group").agg(pl.len().alias("_gone"))
    ranked = stored.join(ranks, on=value).sort("_group", "_rank")
    near = (
        ranked.with_columns(pl.int_range(pl.len()).over("_group").alias("_place"))
        .join(gone, on="_group", how="left")
        .with_columns(pl.col("_gone").fill_null(0))
    )
    # Values that change in this tick keep their stored count, wherever they stand.
    touched = moved.select("_group", value).unique().with_columns(pl.lit(True).alias("_touched"))
    near = near.join(touched, on=["_group", value], how="left")
    near = near.filter((pl.col("_place") <= pl.col("_gone")) | pl.col("_touched"))
    found: dict[int, list[tuple[int, int]]] = {}
    for group, rank, weight in near.select("_group", "_rank", W).iter_rows():
        found.setdefault(group, []).append((rank, weight))
    return found
