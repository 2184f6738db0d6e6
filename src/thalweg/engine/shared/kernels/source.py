"""Base streams: the tuples whose instant, or whose window's start, becomes final in this tick.

Nothing is stored here: a stream's SteM segments and its newly landed tuples are the state, and
which tuples are new to a flow is a question of time alone, so flows may be at different instants.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import is_true
from thalweg.engine.shared.frames import (
    FOREVER,
    POS,
    TS,
    E,
    H,
    T,
    W,
    aligned,
    between,
    concat,
    name,
    names,
)
from thalweg.engine.shared.kernels.hops import in_each_window
from thalweg.engine.shared.state.stems import own_between
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.expr import TRUE, Expr
from thalweg.plan.windows import HopWindow, IntervalWindow


def base_stream(task: Task, flow: Flow, op: ph.BaseStream) -> pl.DataFrame:
    low, high = task.range_of(flow)
    frame = _tuples(task, flow, op.stream, low, high)
    columns = [*names(len(op.types)), TS, POS]
    if op.signed:
        return frame.select(*columns, W)
    return frame.select(*columns, pl.lit(1, dtype=pl.Int64).alias(W))


def source(task: Task, flow: Flow, op: ph.Source) -> pl.DataFrame:
    low, high = task.range_of(flow)
    if op.window.bounds is not None:
        return _in_windows(task, flow, op, low, high)
    frame = _tuples(task, flow, op.stream, low - op.window.delay, high)
    return _starting(frame, op, low, high)


def own_source(
    task: Task, flow: Flow, op: ph.Source, keys: tuple[Expr, ...]
) -> pl.DataFrame | None:
    """The same rows, those alone whose hash of the keys this task owns, with `_h`: a SteM has it,
    so nothing is hashed again. None where there is no such SteM."""

    def make() -> pl.DataFrame | None:
        low, high = task.range_of(flow)
        since = max(low - op.window.delay, flow.horizon(op.stream))
        frame = own_between(task, op.stream, keys, since, high)
        return None if frame is None else _starting(frame, op, low, high)

    if op.window.bounds is not None:
        return None
    return task.once(("own source", flow.name, task.plan.name_of(op), keys), make)


def _starting(frame: pl.DataFrame, op: ph.Source, low: int, high: int) -> pl.DataFrame:
    rows = windowed(_passing(frame, op), op.window)
    if op.window.delay:
        rows = rows.filter(pl.col(T).is_between(low, high, closed="left"))
    return rows


def expiring(task: Task, flow: Flow, op: ph.Source) -> pl.DataFrame:
    """Rows that were there before this tick and end in it."""
    low, high = task.range_of(flow)
    window = op.window
    if window.length is None:
        return windowed(_passing(tuples_between(task, op.stream, 0, 0), op), window)
    since = low - window.length - window.slide
    if window.bounds is not None:
        return _in_windows(task, flow, op, low - window.slide, min(low, high - window.slide))
    frame = _tuples(task, flow, op.stream, since, high - window.length)
    rows = windowed(_passing(frame, op), window)
    return rows.filter((pl.col(T) < low) & (pl.col(E) >= low) & (pl.col(E) < high))


def present(
    task: Task, flow: Flow, op: ph.Source, keys: tuple[Expr, ...]
) -> tuple[pl.DataFrame, bool]:
    """Rows that were there before this tick and do not end with it beginning; and whether only
    those whose hash of the keys this task owns."""
    low, _ = task.range_of(flow)
    length = op.window.length
    since = flow.horizon(op.stream)
    since = since if length is None else max(since, low - length - op.window.slide)
    frame = own_between(task, op.stream, keys, since, low)
    is_own = frame is not None
    if frame is None:
        frame = tuples_between(task, op.stream, since, low)
    rows = windowed(_passing(frame, op), op.window)
    return rows.filter((pl.col(T) < low) & (pl.col(E) > low)), is_own


def _in_windows(task: Task, flow: Flow, op: ph.Source, low: int, high: int) -> pl.DataFrame:
    """The rows of all windows that end in [low, high); most ticks have none, and read nothing."""
    window = op.window
    assert isinstance(window, HopWindow)
    first, last = -(-low // window.slide) * window.slide, (high - 1) // window.slide * window.slide
    since, until = (first - window.length, last) if first <= last else (0, 0)
    frame = _passing(_tuples(task, flow, op.stream, since, until), op)
    return in_each_window(frame, window, low, high, op.own)


def windowed(frame: pl.DataFrame, window: IntervalWindow) -> pl.DataFrame:
    """Stream rows as interval rows; those with an empty interval are gone."""
    start, end = interval(window)
    columns = [c for c in frame.columns if c.startswith("c") or c == H]
    weight = pl.col(W) if W in frame.columns else pl.lit(1, dtype=pl.Int64).alias(W)
    rows = frame.select(*columns, start.alias(T), end.alias(E), weight)
    return rows.filter(pl.col(T) < pl.col(E)) if window.slide > 1 else rows


def interval(window: IntervalWindow, ts: str = TS) -> tuple[pl.Expr, pl.Expr]:
    """A window's interval over the timestamp column."""
    start, end = window.interval(pl.col(ts))
    return start, pl.lit(FOREVER, dtype=pl.Int64) if window.length is None else end


def intervals(window: IntervalWindow, stamps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same over an array of timestamps."""
    start, end = window.interval(stamps)
    return start, np.full(len(stamps), FOREVER) if window.length is None else end


def _passing(frame: pl.DataFrame, op: ph.Source) -> pl.DataFrame:
    # Columns that the stream was given after the query do not exist for it.
    known = {*names(op.own), TS, POS, W, H}
    if not known.issuperset(frame.columns):
        frame = frame.select(c for c in frame.columns if c in known)
    passing = frame if op.predicate == TRUE else frame.filter(is_true(op.predicate))
    if op.placed:
        place = (pl.col(c).alias(name(op.own + i)) for i, c in enumerate((TS, POS)))
        passing = passing.with_columns(place)
    if op.stamped:
        return passing.with_columns(pl.col(TS).alias(name(len(op.types) - 1)))
    return passing


def _tuples(task: Task, flow: Flow, stream: str, low: int, high: int) -> pl.DataFrame:
    return tuples_between(task, stream, max(low, flow.horizon(stream)), high)


def tuples_between(task: Task, stream: str, low: int, high: int) -> pl.DataFrame:
    """All tuples with low <= timestamp < high, stored and new, on every task alike."""
    return task.once(("tuples", stream, low, high), lambda: _read(task, stream, low, high))


def _read(task: Task, stream: str, low: int, high: int) -> pl.DataFrame:
    landed = task.landed(stream)
    parts = []
    for mapped in task.stored_between(task.log_table(stream), low, high):
        segment = mapped.segment
        whole = segment is not None and low <= segment.low and segment.high < high
        frame = aligned(mapped.frame, landed)
        parts.append(frame if whole else between(frame, low, high))
    parts.append(between(landed, low, high))
    return concat(parts, landed)
