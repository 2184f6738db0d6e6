"""Base relations: changes in order, where a minus that matches no row is rejected."""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import (
    FOREVER,
    TS,
    E,
    H,
    T,
    W,
    empty_relation,
    names,
)
from thalweg.engine.shared.kernels.running import append_sums, stored_sums
from thalweg.engine.shared.state import relations
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task

COUNT = "_count"


def changes(task: Task, flow: Flow, op: ph.Changes) -> pl.DataFrame:
    accepted = judged(task, flow, op).filter(~pl.col("_rejected"))
    columns = names(len(op.types))
    if not accepted.height:
        return empty_relation(op.types)
    return accepted.select(
        *columns, pl.col(TS).alias(T), pl.lit(FOREVER, dtype=pl.Int64).alias(E), W
    )


def judged(task: Task, flow: Flow, op: ph.Changes) -> pl.DataFrame:
    """The tick's changes, each with whether it is rejected."""
    return task.once(("judged", flow.name, task.plan.name_of(op)), lambda: _judge(task, flow, op))


def _judge(task: Task, flow: Flow, op: ph.Changes) -> pl.DataFrame:
    arrived = task.evaluate(flow, op.input)
    columns = names(len(op.types))
    keyed = with_hash(arrived, [pl.col(c) for c in columns])
    table = task.state_table(flow, op)
    stored = stored_sums(task, table, keyed[H], columns, [COUNT])
    if stored is None:
        keyed = keyed.with_columns(pl.lit(0, dtype=pl.Int64).alias(COUNT))
    else:
        keyed = keyed.join(stored.drop(H), on=columns, how="left", nulls_equal=True)
        keyed = keyed.with_columns(pl.col(COUNT).fill_null(0))
    result = relations.judged(keyed, columns, pl.col(COUNT)).drop(COUNT)
    kept = result.filter(~pl.col("_rejected")).rename({W: COUNT})
    append_sums(task, table, kept.select(*columns, H, COUNT), columns, [COUNT])
    return result
