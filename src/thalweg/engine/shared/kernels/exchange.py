"""Rows change hands: between two levels of a tick's job, or not at all."""

from __future__ import annotations

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import concat, empty_relation, empty_stream
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task


def exchange(task: Task, flow: Flow, op: ph.Exchange) -> pl.DataFrame:
    if task.is_alone or op.stays:
        return task.evaluate(flow, op.input)
    if ph.is_everywhere(op.input):
        frame = task.evaluate(flow, op.input)
        return frame if op.keys is None else task.owned(frame, [to_polars(k) for k in op.keys])
    is_stream = isinstance(op.input, ph.StreamOp)
    empty = empty_stream(op.types) if is_stream else empty_relation(op.types)
    return concat(task.inbox.get(channel(task, flow, op), []), empty)


def channel(task: Task, flow: Flow, op: ph.Exchange) -> str:
    return f"{flow.name}/{task.plan.name_of(op)}"
