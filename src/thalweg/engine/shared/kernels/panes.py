"""Partial aggregates, pane by pane, and the windows that look at them (`shared.panes`).

A tick adds up what its own tuples contribute to each group in each pane, and appends that to a
table; a pane whose tuples came in several ticks has several rows, which enter and leave together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import FOREVER, TS, E, H, T, W, dtype, names
from thalweg.engine.shared.kernels import accumulators
from thalweg.engine.shared.kernels.accumulators import ROWS, extreme_name, value_name
from thalweg.engine.shared.kernels.source import intervals
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import BEGINNING

SIDES = ("min", "max")


def pane_events(task: Task, flow: Flow, op: ph.Panes) -> pl.DataFrame:
    """Partial aggregates that enter the window or leave it in this tick: `c…` for the keys, their
    columns, `_t` and `_w`."""
    low, high = task.range_of(flow)
    parts, instants, weights = [], [], []
    for frame in _known(task, flow, op.input):
        for rows, at, weight in _turns(frame[TS].to_numpy(), op, low, high):
            if len(rows):
                parts.append(frame[rows])
                instants.append(at)
                weights.append(np.full(len(rows), weight))
    if not parts:
        return _fresh(task, flow, op.input).clear()
    times = [pl.Series(T, np.concatenate(instants)), pl.Series(W, np.concatenate(weights))]
    found = pl.concat(parts, how="diagonal").drop(TS, H, E, strict=False).hstack(times)
    sums = [c for c in found.columns if accumulators.is_sum(c)]
    return found.with_columns(pl.col(c).fill_null(0) for c in sums)


def _turns(
    stamps: np.ndarray, op: ph.Panes, low: int, high: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Of panes in order: which rows turn in [low, high), when, and whether they come or go."""
    length, slack = op.window.length, op.window.slide + op.input.width
    first, last = np.searchsorted(stamps, (low - slack, high))
    start, end = intervals(op.window, stamps[first:last])
    comes = (start >= low) & (start < high) & (start < end)
    goes = comes & (end < high)
    yield first + np.flatnonzero(comes), start[comes], 1
    yield first + np.flatnonzero(goes), end[goes], -1
    if length is not None:
        first, last = np.searchsorted(stamps, (low - length - slack, high - length))
        start, end = intervals(op.window, stamps[first:last])
        goes = (start < low) & (start < end) & (end >= low) & (end < high)
        yield first + np.flatnonzero(goes), end[goes], -1


def last_turn(task: Task, flow: Flow, op: ph.Panes) -> int:
    """The last instant at which what is known enters or leaves the window."""
    last = BEGINNING
    for frame in _known(task, flow, op.input):
        start, end = intervals(op.window, frame[TS].to_numpy())
        turns = np.where(end < FOREVER, end, start)[start < end]
        last = max(last, int(turns.max(initial=BEGINNING)))
    return last


def _known(task: Task, flow: Flow, op: ph.Partials) -> list[pl.DataFrame]:
    """What earlier ticks and this one have added up, of this task's groups."""

    def read() -> list[pl.DataFrame]:
        low, _ = task.range_of(flow)
        found = task.stored_between(task.state_table(flow, op, "panes"), low, FOREVER)
        own = [m.frame if task.is_alone else m.frame.filter(task.owns_hash()) for m in found]
        return [*own, _fresh(task, flow, op)]

    return task.once(("panes", flow.name, task.plan.name_of(op)), read)


def _fresh(task: Task, flow: Flow, op: ph.Partials) -> pl.DataFrame:
    """This tick's own, which are stored on the way."""

    def make() -> pl.DataFrame:
        fresh = partials(task.evaluate(flow, op.input), op)
        if fresh.height:
            _store(task, flow, op, fresh)
        return fresh

    return task.once(("partials", flow.name, task.plan.name_of(op)), make)


def partials(tuples: pl.DataFrame, op: ph.Partials) -> pl.DataFrame:
    """What tuples add to each group in each pane; a pane is known by one of its instants, `_ts`."""
    keys = names(len(op.keys))
    within = pl.col(T) % op.width
    pane = pl.when(within == 0).then(T).otherwise(pl.col(T) - within + 1).alias(TS)
    columns = [
        *(to_polars(k).cast(dtype(k.type)).alias(c) for k, c in zip(op.keys, keys, strict=True)),
        *(to_polars(a).cast(dtype(a.type)).alias(value_name(i)) for i, a in enumerate(op.args)),
    ]
    frame = tuples.select(*columns, pane, W, pl.col(W).alias(ROWS))
    extremes = [i for i, wanted in enumerate(op.extremes) if wanted]
    seen = [pl.col(value_name(i)).alias(extreme_name(side, i)) for i in extremes for side in SIDES]
    summed = {i: op.args[i].type for i, wanted in enumerate(op.summed) if wanted}
    kept = [pl.col(c) for c in (*keys, TS, ROWS)]
    frame = accumulators.contributed(frame, [*kept, *seen], summed, "p")
    added = [c for c in frame.columns if accumulators.is_sum(c)]
    grouped = frame.group_by([*keys, TS], maintain_order=True).agg(
        *(pl.col(c).sum() for c in added),
        *(pl.col(extreme_name("min", i)).min() for i in extremes),
        *(pl.col(extreme_name("max", i)).max() for i in extremes),
    )
    return with_hash(grouped, [pl.col(k) for k in keys]).sort(TS)


def _store(task: Task, flow: Flow, op: ph.Partials, fresh: pl.DataFrame) -> None:
    low, _ = task.range_of(flow)
    # A pane is known by one of its instants, and may have tuples up to a width later.
    until = fresh.with_columns((pl.col(TS) + (_reach(task, flow, op) + op.width)).alias(E))

    def merge(frame: pl.DataFrame) -> pl.DataFrame:
        sums = [pl.col(c).fill_null(0) for c in frame.columns if accumulators.is_sum(c)]
        return frame.filter(pl.col(E) >= low).with_columns(sums)

    table = task.state_table(flow, op, "panes")
    tables.append(task, table, until, merge, by=TS, low=TS, high=E, widens=True)


def _reach(task: Task, flow: Flow, op: ph.Partials) -> int:
    """How long a window of this flow may still take a pane in or give it back."""
    memo = task.plan.memo
    if "reach" not in memo:  # once for a plan: there may be many windows
        memo["reach"] = _reaches(task.plan)
    reach: int = memo["reach"][flow.name, task.plan.name_of(op)]
    return reach


def _reaches(plan: Plan) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for flow in plan.flows:
        for o in flow.operators:
            if isinstance(o, ph.Panes):
                key = flow.name, plan.name_of(o.input)
                found[key] = max(found.get(key, 0), (o.window.length or 0) + o.window.slide)
    return found
