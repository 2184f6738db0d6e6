"""How many rows a core makes, from observed rates.

The rate of a window join: a row is made by the last of its tuples, which meets what the windows of
the other leaves hold. With rates r behind each leaf's own filters and window lengths T, rows per
second are the sum over leaves of r times the product of the others' r · T, times the share of
combinations that the conditions between leaves let through. What was not observed is guessed as
System R did: a tenth of all for an equality, a third for anything else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from math import prod

from thalweg.plan.expr import Call, Col, Expr, Value, columns_of
from thalweg.plan.windows import TimeWindow
from thalweg.sharing.core import Core, Signature
from thalweg.sharing.plans import fields_of
from thalweg.sharing.ranges import Range

OF_EQUALITY = 1 / 10
OF_OTHERS = 1 / 3
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Statistics:
    """What was observed of streams and joins."""

    rates: Mapping[str, float]  # tuples per second, by stream
    spans: Mapping[tuple[str, str], tuple[Value, Value]] = field(default_factory=dict)
    """By stream and column, its smallest and largest value."""
    matches: Mapping[Signature, float] = field(default_factory=dict)
    """By signature, the share of combinations of tuples that join."""
    unbounded_s: float = 3600.0  # for how long an Unbounded window is taken to have filled


def rows_per_s(core: Core, statistics: Statistics) -> float:
    starts = core.offsets[:-1]
    kept = [1.0] * len(core.streams)  # of each leaf's tuples
    across = 1.0  # of the combinations of those

    def take(expr: Expr, share: float) -> None:
        nonlocal across
        leaves = {bisect_right(starts, c) - 1 for c in columns_of(expr) if c < core.width}
        if len(leaves) == 1:
            kept[leaves.pop()] *= share
        else:
            across *= share

    observed = statistics.matches.get(core.signature)
    for join in core.joins:
        if observed is None:
            take(join, OF_EQUALITY if _is_equality(join) else OF_OTHERS)
    for expr, values in core.ranges:
        take(expr, share_of(expr, values, core, statistics))
    for residual in core.residuals:
        take(residual.template, OF_OTHERS)
    rates = [statistics.rates[s.name] * share for s, share in zip(core.streams, kept, strict=True)]
    meetings = 0.0
    for leaf, rate in enumerate(rates):
        # Of tuples of one instant the one of the last leaf counts as the last.
        held = (
            rates[other] * _seconds(window, stream.resolution_us, statistics, other < leaf)
            for other, (window, stream) in enumerate(zip(core.windows, core.streams, strict=True))
            if other != leaf
        )
        meetings += rate * prod(held)
    return meetings * across * (observed if observed is not None else 1.0)


def share_of(expr: Expr, values: Range, core: Core, statistics: Statistics) -> float:
    """The share of values in a range: by the column's span where that is known."""
    if values.is_empty:
        return 0.0
    span = _span(expr, core, statistics)
    if span is None:
        return OF_EQUALITY if values.is_point else OF_OTHERS
    low, high = span
    if low == high:
        return 1.0
    begin = max(low, low if values.low is None else _number(values.low.value, low))
    end = min(high, high if values.high is None else _number(values.high.value, high))
    if values.is_point:
        return OF_EQUALITY if begin == end else 0.0
    return max(0.0, (end - begin) / (high - low))


def _span(expr: Expr, core: Core, statistics: Statistics) -> tuple[float, float] | None:
    if not isinstance(expr, Col):
        return None
    leaf = bisect_right(core.offsets[:-1], expr.index) - 1
    name = core.streams[leaf].name, fields_of(core.streams)[expr.index].name
    found = statistics.spans.get(name)
    if found is None or isinstance(found[0], str | bool | None):
        return None  # texts have no distances
    return _number(found[0], 0.0), _number(found[1], 0.0)


def _number(value: Value, otherwise: float) -> float:
    match value:
        case datetime():
            return (value - datetime(1970, 1, 1)).total_seconds()
        case date():
            return float(value.toordinal())
        case None | str():
            return otherwise
        case _:
            return float(value)


def _is_equality(join: Expr) -> bool:
    return isinstance(join, Call) and join.function == "="


def _seconds(
    window: TimeWindow, resolution_us: int, statistics: Statistics, with_this_instant: bool
) -> float:
    """How much of the past a window holds."""
    if window.length is None:
        return statistics.unbounded_s
    return (window.length + with_this_instant) * resolution_us / _MICROSECONDS
