"""A query's result for a tick: sorted rows of (instant, op, columns), in canonical order."""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import OP, TS, E, T, W, names, net
from thalweg.engine.shared.kernels.expiry import events
from thalweg.engine.shared.kernels.streams import half, snapshots
from thalweg.engine.shared.ordering import order_of
from thalweg.engine.shared.results.content import unpacked
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import Col
from thalweg.plan.nodes import StreamKind


def output(task: Task, flow: Flow, query: str, op: ph.Output) -> pl.DataFrame:
    """Columns `_ts`, `_op`, `c0`, …; a row that is there n times stands n times."""
    start = task.spec.started.get(query)
    # Equal queries have one output, and one state of it.
    once = ("output", flow.name, task.plan.name_of(op))
    held = task.spec.held.get(query)
    unique = position_of(op.input.input) if op.kind is StreamKind.ISTREAM else None
    if unique is not None and held is None:
        return _tuples(task.evaluate(flow, op.input), op, start, unique)
    if op.kind is StreamKind.RSTREAM:
        shown = task.once(once, lambda: snapshots(task, flow, op))
        stream = shown if start is None else shown.filter(pl.col(TS) >= start)
    else:
        happened = task.once(once, lambda: events(task, flow, op, op.input, "ends"))
        changes = _changes(happened, op, start, held)
        stream = half(changes, op.kind) if op.kind is not None else changes.rename({T: TS})
    columns = names(len(op.types))
    rows = stream.select(TS, pl.col(W).sign().cast(pl.Int8).alias(OP), *columns, pl.col(W).abs())
    if (rows[W] > 1).any():
        rows = rows[np.repeat(np.arange(rows.height), rows[W].to_numpy())]
    return rows.drop(W).sort(TS, OP, *columns, nulls_last=False)


def position_of(op: ph.AnyOp) -> int | None:
    """Which column is a tuple's position, where rows are the tuples of one stream: no two of them
    are equal."""
    match op:
        case ph.Source(placed=True) if op.window.bounds is None:
            return op.own + 1
        case ph.TimeOf(ph.PlacedOf() as due, window) if window.bounds is None:
            return len(due.types) - 1
        case ph.Map(below, _, exprs):
            place = position_of(below)
            found = [i for i, e in enumerate(exprs) if isinstance(e, Col) and e.index == place]
            return found[0] if found else None
        case _:
            return None


def _tuples(delta: pl.DataFrame, op: ph.Output, start: int | None, unique: int) -> pl.DataFrame:
    """ISTREAM of rows of which no two are equal: nothing is netted, and what stands behind the
    column that tells them apart is not looked at to order them."""
    if start is not None:
        delta = delta.filter(pl.col(E) > start).with_columns(pl.col(T).clip(lower_bound=start))
    plus = pl.lit(1, dtype=pl.Int8).alias(OP)
    rows = delta.select(pl.col(T).alias(TS), plus, *names(len(op.types)))
    order = order_of(rows.select(TS, *names(unique + 1)))
    return rows if order is None else rows[order]


def _changes(
    happened: pl.DataFrame, op: ph.Output, start: int | None, held: bytes | None
) -> pl.DataFrame:
    """Net changes; what happened before the query's start all arrives with it, less what the
    version before it held."""
    if start is not None:
        happened = happened.with_columns(pl.col(T).clip(lower_bound=start))
    if held is not None:
        assert start is not None, "who held rows has come to an instant"
        before = unpacked(held).with_columns(pl.lit(start, dtype=pl.Int64).alias(T), -pl.col(W))
        happened = pl.concat([happened.select(before.columns), before])
    return net(happened, [*names(len(op.types)), T])
