"""Between relations and streams: ISTREAM, DSTREAM, RSTREAM, and windows over derived streams."""

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
    concat,
    empty_relation,
    empty_stream,
    names,
    net,
)
from thalweg.engine.shared.kernels.coalesce import coalesced
from thalweg.engine.shared.kernels.expiry import events
from thalweg.engine.shared.kernels.hops import in_each_window
from thalweg.engine.shared.kernels.panes import last_turn
from thalweg.engine.shared.kernels.source import interval, tuples_between, windowed
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.tick.plan import Flow
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.nodes import StreamKind
from thalweg.plan.windows import BEGINNING, HopWindow


def stream_of(task: Task, flow: Flow, op: ph.StreamOf) -> pl.DataFrame:
    if op.kind is StreamKind.RSTREAM:
        return snapshots(task, flow, op)
    happened = events(task, flow, op, op.input, "ends")
    return half(net(happened, [*names(len(op.types)), T]), op.kind)


def half(changes: pl.DataFrame, kind: StreamKind) -> pl.DataFrame:
    """The plus half (ISTREAM) or the minus half (DSTREAM) as stream rows."""
    columns = [c for c in changes.columns if c.startswith("c")]
    sign = 1 if kind is StreamKind.ISTREAM else -1
    return changes.filter(pl.col(W) * sign > 0).select(
        *columns, pl.col(T).alias(TS), pl.lit(0, dtype=pl.Int64).alias(POS), pl.col(W).abs()
    )


def snapshots(task: Task, flow: Flow, owner: ph.StreamOf | ph.Output) -> pl.DataFrame:
    """RSTREAM: the whole relation, at every instant at which an input has a tuple or slides."""
    op = owner.input
    low, high = task.range_of(flow)
    columns = names(len(op.types))
    delta = task.evaluate(flow, op).select(*columns, T, E, W)
    table = task.state_table(flow, owner, "live")
    old = [m.frame for m in task.stored_between(table, low + 1, high)]
    old = [f if task.is_alone else f.filter(task.owns_hash()) for f in old]
    _keep(task, op, table, columns, delta, high)
    live = coalesced(pl.concat([delta, *(f.select(delta.columns) for f in old)]), high)
    instants = np.unique(
        np.concatenate(
            [_arrivals(task, flow, owner, low, high), _slides(task, flow, owner, live, low, high)]
        )
    )
    if not live.height or not len(instants):
        return empty_stream(op.types)
    first = np.searchsorted(instants, np.maximum(live[T].to_numpy(), low), side="left")
    last = np.searchsorted(instants, live[E].to_numpy(), side="left")
    count = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(live.height), count)
    ends = np.cumsum(count)
    within = np.arange(len(rows)) - np.repeat(ends - count, count)
    shown = live[rows].select(*columns, W)
    shown = shown.with_columns(pl.Series(TS, instants[first[rows] + within], dtype=pl.Int64))
    present = net(shown, [*columns, TS])
    return present.select(*columns, TS, pl.lit(0, dtype=pl.Int64).alias(POS), W)


def _keep(
    task: Task, op: ph.Exchange, table: str, columns: list[str], delta: pl.DataFrame, high: int
) -> None:
    """Remember rows that reach beyond this tick."""
    lasting = delta.filter(pl.col(E) > high)
    if not lasting.height:
        return
    keyed = with_hash(lasting, [pl.col(c) for c in columns])
    merge = tables.merge_intervals(columns, high)
    tables.append(task, table, keyed, merge, low=T, high=E)


def _arrivals(
    task: Task, flow: Flow, owner: ph.StreamOf | ph.Output, low: int, high: int
) -> np.ndarray:
    """Instants at which a base input below has an accepted tuple, before any predicate."""
    streams = sorted(ph.base_names(owner) - task.plan.signed)
    stamps = [
        tuples_between(task, s, max(low, flow.horizon(s)), high)[TS].to_numpy() for s in streams
    ]
    changed = [task.evaluate(flow, relation)[T].to_numpy() for relation in owner.relations]
    return np.concatenate([*stamps, *changed])


def _slides(
    task: Task, flow: Flow, owner: ph.AnyOp, live: pl.DataFrame, low: int, high: int
) -> np.ndarray:
    """Boundaries of sliding windows, as far as time runs, while something is there to be shown.

    When all its inputs have ended, time runs until nothing changes any more, however far it goes on
    for others.
    """
    slides = slides_below(owner)
    if not slides or not live.height:
        return np.empty(0, dtype=np.int64)
    start = max(low, int(live[T].min()))  # type: ignore[arg-type]
    stop = high
    clocks = ph.base_names(owner) - task.plan.tables
    if clocks and clocks.issubset(task.spec.ended):
        stop = min(high, _last_instant(task, flow, owner) + 1)
    return np.concatenate([np.arange(-(-start // s) * s, stop, s) for s in sorted(slides)])


def slides_below(op: ph.AnyOp) -> set[int]:
    windows = [o.window for o in ph.walk(op) if isinstance(o, ph.Source | ph.TimeOf | ph.Panes)]
    return {w.slide for w in windows if w.slide > 1}


def _last_instant(task: Task, flow: Flow, owner: ph.AnyOp) -> int:
    """At the end of all inputs: when the last tuple came, or the last interval closes."""
    last = BEGINNING
    for op in ph.walk(owner):
        match op:
            case ph.Source():
                low, _ = task.range_of(flow)
                since = low - (op.window.length or 0) - op.window.slide
                stamps = tuples_between(
                    task, op.stream, max(since, flow.horizon(op.stream)), FOREVER
                )
                last = max(last, stamps[TS].max() or last, _reach(windowed(stamps, op.window)))
            case ph.Panes():
                last = max(last, last_turn(task, flow, op))
            case ph.TolerantOf():
                task.evaluate(flow, op)  # which remembers how far it reached
                last = max(last, _furthest(task, flow, op))
            case ph.TimeOf() | ph.SessionsOf():
                rows = task.evaluate(flow, op)
                last = max(last, _reach(rows), _furthest(task, flow, op))
    return max([last, *_arrivals(task, flow, owner, *task.range_of(flow)).tolist()])


def _reach(rows: pl.DataFrame) -> int:
    """The last instant at which one of these intervals begins or ends."""
    if not rows.height:
        return BEGINNING
    turn = pl.when(pl.col(E) < FOREVER).then(pl.col(E)).otherwise(pl.col(T))
    return int(rows.select(turn.max()).item())


def time_of(task: Task, flow: Flow, op: ph.TimeOf) -> pl.DataFrame:
    """A derived stream under a time window; rows that start after this tick wait."""
    low, high = task.range_of(flow)
    rows = _derived(task.evaluate(flow, op.input), op)
    remember_reach(task, flow, op, _reach(rows))
    if not op.window.delay:
        return rows
    columns = names(len(op.types))
    table = task.state_table(flow, op, "waiting")
    waiting = [
        m.frame.filter(pl.col(T).is_between(low, high, closed="left"))
        for m in task.stored_between(table, low, high)
    ]
    waiting = [f if task.is_alone else f.filter(task.owns_hash()) for f in waiting]
    later = rows.filter(pl.col(T) >= high)
    if later.height:
        keyed = with_hash(later, [pl.col(c) for c in columns])
        tables.append(
            task, table, keyed, lambda f: f.filter(pl.col(T) >= high), by=T, low=T, high=T
        )
    now = rows.filter(pl.col(T) < high)
    return concat([now, *(f.select(now.columns) for f in waiting)], empty_relation(op.types))


def _derived(stream: pl.DataFrame, op: ph.TimeOf) -> pl.DataFrame:
    """Stream rows as interval rows, whenever they start."""
    if op.window.bounds is not None:
        assert isinstance(op.window, HopWindow)
        return in_each_window(stream, op.window, BEGINNING, FOREVER, len(op.input.types))
    begin, end = interval(op.window)
    rows = stream.select(*names(len(op.types)), begin.alias(T), end.alias(E), W)
    return rows.filter(pl.col(T) < pl.col(E))


# --- the latest end so far: RSTREAM asks for it when all inputs have ended

Reaching = ph.TimeOf | ph.SessionsOf | ph.TolerantOf


def remember_reach(task: Task, flow: Flow, op: Reaching, reach: int) -> None:
    task.once(("reach", flow.name, task.plan.name_of(op)), lambda: reach)
    if reach > BEGINNING:
        end = pl.DataFrame({E: [reach], H: [0]}, schema={E: pl.Int64, H: pl.UInt64})
        table = task.state_table(flow, op, "reach")
        tables.append(task, table, end, lambda f: f.sort(E).tail(1), low=E, high=E)


def _furthest(task: Task, flow: Flow, op: Reaching) -> int:
    """What was remembered, now and before."""
    key = ("reach", flow.name, task.plan.name_of(op))
    stored = task.stored(task.state_table(flow, op, "reach"))
    now: int = task.once(key, lambda: BEGINNING)
    return max([now, *(int(m.frame[E].max()) for m in stored)])  # type: ignore[arg-type]
