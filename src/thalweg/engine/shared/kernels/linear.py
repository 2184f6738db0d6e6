"""Operators that treat every row by itself: filter, project, bag union and difference."""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import is_true, to_polars
from thalweg.engine.shared.frames import E, T, W, concat, dtype, empty_relation, name, names
from thalweg.engine.shared.kernels import source
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import TRUE, Expr


def map_(task: Task, flow: Flow, op: ph.Map) -> pl.DataFrame:
    return mapped(task.evaluate(flow, op.input), op)


def mapped(frame: pl.DataFrame, op: ph.Map) -> pl.DataFrame:
    if op.predicate != TRUE:
        frame = frame.filter(is_true(op.predicate))
    return frame.select(*outputs(op.exprs), T, E, W)


def outputs(exprs: tuple[Expr, ...]) -> list[pl.Expr]:
    """Output columns; the cast pins a literal's type and is free where it already holds."""
    return [to_polars(e).cast(dtype(e.type)).alias(name(i)) for i, e in enumerate(exprs)]


def union(task: Task, flow: Flow, op: ph.Union) -> pl.DataFrame:
    divided = not ph.is_everywhere(op)
    parts = []
    for sign, part in op.inputs:
        frame = task.evaluate(flow, part)
        if divided and ph.is_everywhere(part):
            # Every task has all of these rows; among rows that are divided each takes its share.
            frame = task.owned(frame, [pl.col(c) for c in names(len(part.types))])
        parts.append(signed(frame, sign))
    return concat(parts, empty_relation(op.types))


def signed(frame: pl.DataFrame, sign: int) -> pl.DataFrame:
    return frame if sign == 1 else frame.with_columns((pl.col(W) * sign).alias(W))


def expiring(task: Task, flow: Flow, op: ph.AnyOp) -> pl.DataFrame | None:
    """Rows of an earlier tick that end in this one, read back from the streams' SteMs.

    None where that can't be: then the operator above has to remember ends by itself.
    """
    match op:
        case ph.Source():
            return source.expiring(task, flow, op)
        case ph.Map():
            below = expiring(task, flow, op.input)
            return None if below is None else mapped(below, op)
        case ph.Union():
            parts = [(sign, expiring(task, flow, part)) for sign, part in op.inputs]
            if any(p is None for _, p in parts):
                return None
            return concat(
                [signed(p, s) for s, p in parts if p is not None], empty_relation(op.types)
            )
        case _:
            return None
