"""DISTINCT, EXCEPT and INTERSECT: how often a row is there decides whether it shows.

State: the multiplicity of every row, per side. At each instant of a row's events the old and the
new multiplicities give what was shown and what is shown; the difference goes out.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import FOREVER, E, T, W, empty_relation, names
from thalweg.engine.shared.kernels.expiry import events
from thalweg.engine.shared.kernels.running import running_sums
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.nodes import SetKind

LEFT, RIGHT = "_left", "_right"


def distinct(task: Task, flow: Flow, op: ph.Distinct) -> pl.DataFrame:
    changes = events(task, flow, op, op.input, "ends").rename({W: LEFT})
    return _shown(task, flow, op, changes, [LEFT], lambda left: (left > 0).cast(pl.Int64))


def set_op(task: Task, flow: Flow, op: ph.SetOp) -> pl.DataFrame:
    zero = pl.lit(0, dtype=pl.Int64)
    left = events(task, flow, op, op.left, "left-ends")
    right = events(task, flow, op, op.right, "right-ends")
    columns = [*names(len(op.types)), T]
    changes = pl.concat(
        [
            left.select(*columns, pl.col(W).alias(LEFT), zero.alias(RIGHT)),
            right.select(*columns, zero.alias(LEFT), pl.col(W).alias(RIGHT)),
        ]
    )
    return _shown(task, flow, op, changes, [LEFT, RIGHT], _RULES[op.kind, op.all])


_RULES: dict[tuple[SetKind, bool], Callable[..., pl.Expr]] = {
    (SetKind.EXCEPT, True): lambda a, b: pl.max_horizontal(a - b, pl.lit(0, dtype=pl.Int64)),
    (SetKind.EXCEPT, False): lambda a, b: ((a > 0) & (b == 0)).cast(pl.Int64),
    (SetKind.INTERSECT, True): lambda a, b: pl.min_horizontal(a, b),
    (SetKind.INTERSECT, False): lambda a, b: ((a > 0) & (b > 0)).cast(pl.Int64),
}


def _shown(
    task: Task,
    flow: Flow,
    op: ph.Distinct | ph.SetOp,
    changes: pl.DataFrame,
    sides: list[str],
    rule: Callable[..., pl.Expr],
) -> pl.DataFrame:
    if not changes.height:
        return empty_relation(op.types)
    columns = names(len(op.types))
    table = task.state_table(flow, op)
    steps = running_sums(task, table, changes, columns, sides)
    after = rule(*(pl.col(f"{s}_after") for s in sides))
    before = rule(*(pl.col(f"{s}_before") for s in sides))
    return (
        steps.with_columns((after - before).alias(W))
        .filter(pl.col(W) != 0)
        .select(*columns, T, pl.lit(FOREVER, dtype=pl.Int64).alias(E), W)
    )
