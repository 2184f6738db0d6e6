"""Single events for operators that look at instants: starts now, ends when they are due.

Ends that can be read back from the streams' SteMs are (`linear.expiring`); other ends that lie
beyond this tick are remembered in a table sorted by instant, with the hash of the key by which the
operator divides its rows among tasks.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared import frames
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import FOREVER, E, H, T, W, names
from thalweg.engine.shared.kernels import linear
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task


def events(task: Task, flow: Flow, owner: ph.AnyOp, op: ph.Exchange, part: str) -> pl.DataFrame:
    """All events of this tick, `c…`, `_t` and `_w`, of the rows that this task owns."""
    low, high = task.range_of(flow)
    delta = task.evaluate(flow, op)
    recalled = linear.expiring(task, flow, op.input)
    if recalled is not None:
        assert op.keys is not None
        mine = task.owned(recalled, [to_polars(k) for k in op.keys])
        return frames.concat([frames.events(delta, high), _ends(mine)], _ends(mine))
    due = _due(task, task.state_table(flow, owner, part), low, high)
    ends = delta[E].to_numpy()
    later = np.flatnonzero((ends >= high) & (ends < FOREVER))
    if len(later):
        _remember(task, flow, owner, op, part, delta[later])
    now = frames.events(delta, high)
    return now if due is None else pl.concat([now, due.select(now.columns)])


def _ends(frame: pl.DataFrame) -> pl.DataFrame:
    columns = [c for c in frame.columns if c not in (T, E, W)]
    return frame.select(*columns, pl.col(E).alias(T), (-pl.col(W)).alias(W))


def _due(task: Task, table: str, low: int, high: int) -> pl.DataFrame | None:
    parts = []
    for mapped in task.stored_between(table, low, high):
        ends = mapped.frame[E]
        first, last = ends.search_sorted(low), ends.search_sorted(high)
        slice_ = mapped.frame.slice(first, last - first)
        parts.append(slice_ if task.is_alone else slice_.filter(task.owns_hash()))
    parts = [p for p in parts if p.height]
    return _ends(pl.concat(parts).drop(H)) if parts else None


def _remember(
    task: Task, flow: Flow, owner: ph.AnyOp, op: ph.Exchange, part: str, later: pl.DataFrame
) -> None:
    _, high = task.range_of(flow)
    assert op.keys is not None
    keyed = with_hash(later, [to_polars(k) for k in op.keys]).drop(T)
    columns = names(len(op.types))

    def merge(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col(E) >= high)

    tables.append(
        task,
        task.state_table(flow, owner, part),
        keyed.select(*columns, E, W, H),
        merge,
        by=E,
        low=E,
        high=E,
    )
