"""Windows: lengths in instants of the stream that they stand on."""

from __future__ import annotations

from dataclasses import replace

from thalweg.cql import syntax
from thalweg.cql.errors import Mistake, Span, did_you_mean
from thalweg.cql.syntax import ColumnRef, Duration
from thalweg.cql.units import in_words, microseconds
from thalweg.plan.nodes import Node, Schema, base_streams
from thalweg.plan.types import BIGINT, TIMESTAMP
from thalweg.plan.windows import (
    FOREVER,
    Bounds,
    HopWindow,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
)


def window_spec(
    window: syntax.Window, stream: Node, resolution_us: int, names: tuple[str | None, ...]
) -> WindowSpec:
    """`names` are what the stream may be called inside Partition By."""
    if isinstance(window, syntax.RowsWindow):
        keys = _keys(window.partition_by, stream.schema, names)
        slide = 1 if window.slide is None else _rows(window.slide, "a Rows window slides by")
        return RowsWindow(_rows(window.count, "a Rows window holds"), slide, keys)
    if isinstance(window, syntax.HopWindow):
        return _hop(window, stream, resolution_us)
    if isinstance(window, syntax.SessionWindow):
        keys = _keys(window.partition_by, stream.schema, names)
        return SessionWindow(_positive(window.gap, stream, resolution_us, "a session's gap"), keys)
    length = None
    if window.length is not None:
        length = instants(window.length, resolution_us, is_counted(window.length, stream))
        if length < 0:
            raise Mistake("a window's length can't be negative", window.length.span)
    if window.slide is None:
        return TimeWindow(length)
    slide = instants(window.slide, resolution_us, is_counted(window.slide, stream))
    if slide < 1:
        raise Mistake("a window slides by at least one instant", window.slide.span)
    return TimeWindow(length, slide)


def _hop(window: syntax.HopWindow, stream: Node, resolution_us: int) -> HopWindow:
    length = _positive(window.length, stream, resolution_us, "a window's length")
    if window.every is None:
        return HopWindow(length, length)
    slide = _positive(window.every, stream, resolution_us, "a window's hop")
    if length % slide:
        message = "a window's hop must divide its length, so that all windows are equally long"
        raise Mistake(message, window.every.span)
    return HopWindow(length, slide)


def _positive(duration: Duration, stream: Node, resolution_us: int, what: str) -> int:
    length = instants(duration, resolution_us, is_counted(duration, stream))
    if length < 1:
        raise Mistake(f"{what} is at least one instant", duration.span)
    return length


# With its bounds a tuple is a row for each window that it is in.
MOST_ROWS = 10_000


def with_bounds(
    spec: HopWindow | SessionWindow, stream: Node, resolution_us: int, span: Span
) -> HopWindow | SessionWindow:
    """With window_start and window_end: numbers where all timestamps are, else points in time."""
    if isinstance(spec, HopWindow) and spec.count > MOST_ROWS:
        message = f"with its bounds, each tuple would be {spec.count} rows; {MOST_ROWS} is the most"
        raise Mistake(message, span, "hop by a longer time, or leave the bounds out")
    counted = all(s.timestamp_type.is_integer for s in base_streams(stream))
    return replace(spec, bounds=Bounds(BIGINT) if counted else Bounds(TIMESTAMP, resolution_us))


def instants(duration: Duration, resolution_us: int, is_counted: bool) -> int:
    """A length in units of the resolution; where timestamps are counted, it may be that already."""
    if duration.unit is None:
        if duration.amount == 0:
            return 0
        if not is_counted:
            hint = "only streams stamped by integers can be counted without a unit"
            raise Mistake("this length needs a unit of time", duration.span, hint)
        length, rest = int(duration.amount), duration.amount % 1
    else:
        length, rest = divmod(microseconds(duration), resolution_us)  # type: ignore[assignment]
    if rest:
        message = f"this is not a whole number of RESOLUTION units of {in_words(resolution_us)}"
        raise Mistake(message, duration.span)
    return _bounded(length, duration.span)


def is_counted(duration: Duration, stream: Node) -> bool:
    """Whether the stream's own timestamps are numbers; it only matters without a unit."""
    return duration.unit is None and all(s.timestamp_type.is_integer for s in base_streams(stream))


def _rows(count: Duration, what: str) -> int:
    if count.unit is not None:
        raise Mistake("rows are counted without a unit", count.unit_span)
    if count.amount < 1 or count.amount % 1:
        raise Mistake(f"{what} a whole number of rows, at least one", count.span)
    return _bounded(int(count.amount), count.span)


def _bounded(length: int, span: Span) -> int:
    # Far below FOREVER, so that timestamp + length stays a 64-bit number.
    if abs(length) > FOREVER >> 2:
        raise Mistake("this is too long; write [Unbounded]", span)
    return length


def own_column(
    ref: ColumnRef, schema: Schema, names: tuple[str | None, ...], clause: str, to: str
) -> int:
    """A column of the stream itself; `names` are what it may be called."""
    known = {n.lower() for n in names if n is not None}
    if ref.qualifier is not None and ref.qualifier.lower() not in known:
        raise Mistake(f'{clause} can\'t use columns of "{ref.qualifier}"', ref.span)
    for index, f in enumerate(schema):
        if f.name.lower() == ref.name.lower():
            return index
    hint = did_you_mean(ref.name, (f.name for f in schema))
    raise Mistake(f'there is no column "{ref.name}" {to}', ref.span, hint)


def _keys(
    refs: tuple[ColumnRef, ...], schema: Schema, names: tuple[str | None, ...]
) -> tuple[int, ...]:
    return tuple(own_column(r, schema, names, "Partition By", "to partition by") for r in refs)
