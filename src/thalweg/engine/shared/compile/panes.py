"""Panes: stretches of time whose tuples enter and leave sliding windows together.

A tuple at s is in `[Range T Slide L]` from ⌈s/L⌉·L until (⌊(s + T)/L⌋ + 1)·L. If g divides T and L,
both are the same for all s strictly between two multiples of g; a multiple itself is a pane of its
own. (For `[Hop T EVERY L]` it would belong to those behind it, but so both kinds have panes in
common.) So what a pane's tuples add to a group can be added up once, and every window takes it in
and gives it back as a whole.

The width comes from a ladder in which each step divides the next, not from the other windows: two
queries have panes in common without knowing of each other, and keep them when one goes.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.engine.shared.compile import physical as ph
from thalweg.plan.aggregates import AggCall
from thalweg.plan.expr import Col, Expr
from thalweg.plan.windows import NOW, IntervalWindow

_LADDER_US = (*(10**n for n in range(1, 8)), 60_000_000, 600_000_000, 3_600_000_000, 86_400_000_000)


def pane_width(window: IntervalWindow, resolution_us: int) -> int:
    """In instants; 1 if tuples of different instants have nothing in common."""
    if window.slide == 1:
        return 1
    steps = (us // resolution_us for us in _LADDER_US if us % resolution_us == 0)
    length = window.length or 0
    fitting = (g for g in steps if window.slide % g == 0 and length % g == 0)
    return max(fitting, default=1)


def paned(
    inner: ph.Op, keys: tuple[Expr, ...], calls: tuple[AggCall, ...], resolution_us: int
) -> ph.Aggregate | None:
    """The aggregate over partial aggregates, if it is one of a stream under a sliding window."""
    source = inner.input if isinstance(inner, ph.Map) else inner
    if not isinstance(source, ph.Source) or source.window.bounds or not add_up(calls):
        return None
    width = pane_width(source.window, resolution_us)
    if width == 1:
        return None
    tuples: ph.Op = replace(source, window=NOW)
    if isinstance(inner, ph.Map):
        tuples = replace(inner, input=tuples)
    return over_panes(tuples, source.window, width, keys, calls)


def add_up(calls: tuple[AggCall, ...]) -> bool:
    """Whether what panes say can be put together."""
    return not any(c.distinct for c in calls)


def over_panes(
    tuples: ph.Op,
    window: IntervalWindow,
    width: int,
    keys: tuple[Expr, ...],
    calls: tuple[AggCall, ...],
) -> ph.Aggregate:
    """The aggregate of tuples under a window; of these only the beginnings are looked at."""
    # In an order of their own, so that queries that name them in another have the same.
    args = tuple(sorted({c.arg for c in calls if c.arg is not None}, key=repr))
    partials = ph.Partials(
        ph.Exchange(tuples, keys),
        keys,
        args,
        tuple(any(_adds_up(c) and c.arg == a for c in calls) for a in args),
        tuple(any(not _adds_up(c) and c.arg == a for c in calls) for a in args),
        width,
    )
    panes = ph.Panes(partials, window)
    here = tuple(Col(i, t) for i, t in enumerate(panes.types))
    groups, values = here[: len(keys)], dict(zip(args, here[len(keys) :], strict=True))
    merging = tuple(replace(c, arg=None if c.arg is None else values[c.arg]) for c in calls)
    return ph.Aggregate(ph.Exchange(panes, groups, stays=True), groups, merging)


def _adds_up(call: AggCall) -> bool:
    return call.function in ("count", "sum", "avg")
