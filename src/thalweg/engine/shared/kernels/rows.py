"""Rows windows: a tuple leaves when the N-th later one (of its key) arrives.

State: the tuples that are still to enter or to leave, with their number within the key. Nothing
is filtered below a Rows window, so numbers count all tuples.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import (
    FOREVER,
    POS,
    TS,
    E,
    H,
    T,
    W,
    empty_relation,
    name,
    names,
)
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import RowsWindow

NUMBER, OLD = "_number", "_old"


def rows_of(task: Task, flow: Flow, op: ph.RowsOf) -> pl.DataFrame:
    arrived = task.evaluate(flow, op.input)
    if not arrived.height:
        return empty_relation(op.types)
    columns = names(len(op.types))
    keys = [name(k) for k in op.window.partition_by]
    fresh = _in_order(arrived, columns)
    fresh = with_hash(fresh, [pl.col(k) for k in keys])
    table = task.state_table(flow, op)
    kept = _kept(task, table, fresh, [*columns, TS, POS, NUMBER, H])
    numbered = _numbered(fresh, kept, columns, keys)
    timed = _timed(numbered, op.window, keys)
    _remember(task, table, timed, kept)
    return _intervals(timed, columns)


def _in_order(arrived: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """By (timestamp, position), derived streams by (timestamp, row); repeated rows one by one."""
    once = arrived.select(*columns, TS, POS, W)
    if (once[W] > 1).any():
        once = once[np.repeat(np.arange(once.height), once[W].to_numpy())]
    return once.drop(W).sort(TS, POS, *columns, nulls_last=False)


def _kept(task: Task, table: str, fresh: pl.DataFrame, columns: list[str]) -> pl.DataFrame | None:
    """The stored tuples of the keys that have new ones."""
    found = tables.find(task.stored(table), np.unique(fresh[H].to_numpy()))
    if found is None:
        return None
    return found.group_by(columns).agg(pl.col(W).sum()).filter(pl.col(W) > 0).drop(W)


def _numbered(
    fresh: pl.DataFrame, kept: pl.DataFrame | None, columns: list[str], keys: list[str]
) -> pl.DataFrame:
    """Stored and new tuples per key, in order, the new ones numbered on from the last."""
    order = [*columns, TS, POS, H, NUMBER, OLD]
    new = fresh.with_columns(
        pl.lit(None, dtype=pl.Int64).alias(NUMBER), pl.lit(False).alias(OLD)
    ).select(order)
    if kept is not None:
        new = pl.concat([kept.with_columns(pl.lit(True).alias(OLD)).select(order), new])
    group = keys or [H]
    new = new.with_row_index("_arrival").sort(
        H,
        *keys,
        OLD,
        NUMBER,
        "_arrival",
        descending=[False] * (1 + len(keys)) + [True, False, False],
    )
    last_old = pl.col(NUMBER).max().fill_null(0).over(group)
    position = (~pl.col(OLD)).cast(pl.Int64).cum_sum().over(group)
    return new.with_columns(
        last_old.alias("_last_old"),
        pl.coalesce(NUMBER, last_old + position).alias(NUMBER),
    ).drop("_arrival")


def _timed(numbered: pl.DataFrame, window: RowsWindow, keys: list[str]) -> pl.DataFrame:
    """When each tuple enters and leaves: the timestamps of the tuples with those numbers."""
    group = keys or [H]
    numbered = numbered.with_columns(
        pl.col(NUMBER).max().over(group).alias("_last"),
        pl.col(NUMBER).min().over(group).alias("_first"),
    ).with_row_index("_row")
    number = numbered[NUMBER].to_numpy()
    row = numbered["_row"].to_numpy().astype(np.int64)
    last = numbered["_last"].to_numpy()
    stamps = numbered[TS].to_numpy()
    slide = window.slide
    entering = -(-number // slide) * slide
    leaving = -(-(number + window.count) // slide) * slide

    def stamp(of: np.ndarray) -> np.ndarray:
        known = of <= last
        return np.where(known, stamps[np.where(known, row + of - number, 0)], FOREVER)

    return numbered.with_columns(
        pl.Series(T, stamp(entering), dtype=pl.Int64),
        pl.Series(E, stamp(leaving), dtype=pl.Int64),
        pl.Series("_entered", entering <= numbered["_last_old"].to_numpy()),
    )


def _intervals(timed: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    one = pl.lit(1, dtype=pl.Int64)
    entered = timed.filter(~pl.col("_entered") & (pl.col(T) < pl.col(E)))
    left = timed.filter(pl.col("_entered") & (pl.col(E) < FOREVER))
    forever = pl.lit(FOREVER, dtype=pl.Int64)
    return pl.concat(
        [
            entered.select(*columns, T, E, one.alias(W)),
            left.select(*columns, pl.col(E).alias(T), forever.alias(E), (-one).alias(W)),
        ]
    )


def _remember(task: Task, table: str, timed: pl.DataFrame, kept: pl.DataFrame | None) -> None:
    """Append the tuples that stay, take away the stored ones that went."""
    stored = [c for c in timed.columns if c.startswith("c")] + [TS, POS, NUMBER, H]
    came = timed.filter(~pl.col(OLD) & (pl.col(E) == FOREVER))
    went = timed.filter(pl.col(OLD) & (pl.col(E) < FOREVER))
    one = pl.lit(1, dtype=pl.Int64)
    change = pl.concat([came.select(*stored, one.alias(W)), went.select(*stored, (-one).alias(W))])
    if change.height:
        tables.append(task, table, change, tables.merge_by(stored, [W]))
