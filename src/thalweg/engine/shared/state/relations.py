"""Base relations are kept whole: their changes, and at last what is left of them.

The SteM of a relation has its changes, indexed by the whole row. What was inserted and deleted
again need not be kept for ever: from time to time all changes below an instant become the rows that
they add up to, which then stand at the last instant below it. Snapshots from that instant on do not
tell the difference. Only who looks at when rows came and went does (`compile.history`); a query
like that begins with the relation's content at that instant.
"""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.frames import POS, TS, H, W, concat, names
from thalweg.engine.shared.state.names import rejects_table, stem_table
from thalweg.engine.shared.state.stems import own_new_tuples
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import BEGINNING


def judged(frame: pl.DataFrame, columns: list[str], before: pl.Expr | None = None) -> pl.DataFrame:
    """Changes in order, each with whether it is `_rejected`: a minus that matches no row. `before`
    is a row's multiplicity before them.

    With S the running sum of a row's changes and m its multiplicity before, a minus is rejected
    when m + S falls below zero and below every earlier value: each rejection lifts the level by
    one.
    """
    sums = pl.col(W).cum_sum()
    level = (sums if before is None else before + sums).over(columns)
    lowest = pl.col("_level").cum_min().shift(1).over(columns).fill_null(0)
    is_lower = (pl.col("_level") < 0) & (pl.col("_level") < lowest)
    return (
        frame.sort(TS, POS)
        .with_columns(level.alias("_level"))
        .with_columns((is_lower & (pl.col(W) < 0)).alias("_rejected"))
        .drop("_level")
    )


def reduce(task: Task, stream: str) -> None:
    """Replace the stored changes below an instant by what is left of them, and store the new ones.

    Every task rewrites the rows that it owns of every segment.
    """
    (keys,) = task.plan.stems[stream]
    upto, reported = task.spec.reduced[stream], task.spec.rejects_from.get(stream, BEGINNING)
    table = stem_table(stream, keys)
    fresh = own_new_tuples(task, stream, keys).frame
    segments = task.segments_of(table)
    stored = [task.read(s).frame.select(fresh.columns) for s in segments]
    own = [f if task.is_alone else f.filter(task.owns_hash()) for f in stored]
    everything = concat([*own, fresh], fresh)
    task.forget(segments)
    columns = names(len(task.plan.types[stream]))
    past = judged(everything.filter(pl.col(TS) < upto), columns)
    rejected = past.filter(pl.col("_rejected") & (pl.col(TS) >= reported))
    if rejected.height:
        report_rejects(task, stream, rejected.select(*columns, TS, POS, W))
    left = (
        past.filter(~pl.col("_rejected"))
        .group_by([*columns, H], maintain_order=True)
        .agg(pl.col(W).sum())
        .filter(pl.col(W) != 0)
        .with_columns(
            pl.lit(upto - 1, dtype=pl.Int64).alias(TS), pl.lit(0, dtype=pl.Int64).alias(POS)
        )
        .select(fresh.columns)
    )
    for part in (left, everything.filter(pl.col(TS) >= upto)):
        if part.height:
            instants = part[TS]
            task.writer.add(table, part.sort(H), int(instants.min()), int(instants.max()))  # type: ignore[arg-type]


def report_rejects(task: Task, stream: str, rejected: pl.DataFrame) -> None:
    instants = rejected[TS]
    low, high = int(instants.min()), int(instants.max()) + 1  # type: ignore[arg-type]
    task.results.add(rejects_table(stream), rejected.sort(TS, POS), low, high)
