"""What a window holds at an instant, straight from CQL's definition.

No intervals of single tuples here: the window at τ is found by looking at all tuples up to τ.
Only `turns`, the instants at which the content can change, is by tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from thalweg.engine.arrivals import Row
from thalweg.engine.reference.temporal import EPOCH, add_interval
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import (
    Bounds,
    HopWindow,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
)


class Stamped(NamedTuple):
    """A tuple of a stream; sequences of them are in the stream's order."""

    timestamp: int
    row: Row


def content(spec: WindowSpec, tuples: Sequence[Stamped], now: int) -> list[Row]:
    match spec:
        case TimeWindow():
            return _time_content(spec, tuples, now)
        case HopWindow():
            return _hop_content(spec, tuples, now)
        case SessionWindow():
            return _session_content(spec, tuples, now)
        case RowsWindow():
            return _rows_content(spec, tuples, now)


def _time_content(spec: TimeWindow, tuples: Sequence[Stamped], now: int) -> list[Row]:
    """The tuples of the last `length` instants, as seen at the last slide boundary."""
    seen_at = now // spec.slide * spec.slide
    return [
        row
        for timestamp, row in tuples
        if timestamp <= seen_at and (spec.length is None or timestamp >= seen_at - spec.length)
    ]


def _rows_content(spec: RowsWindow, tuples: Sequence[Stamped], now: int) -> list[Row]:
    """Per key, the last `count` of the tuples, as seen when their number was last a multiple
    of the slide. NULL is a key like any other."""
    by_key: dict[Row, list[Row]] = {}
    for timestamp, row in tuples:
        if timestamp <= now:
            by_key.setdefault(tuple(row[k] for k in spec.partition_by), []).append(row)
    held: list[Row] = []
    for rows in by_key.values():
        seen = len(rows) // spec.slide * spec.slide
        held += rows[max(seen - spec.count, 0) : seen]
    return held


def _hop_content(spec: HopWindow, tuples: Sequence[Stamped], now: int) -> list[Row]:
    """The tuples of the last whole window: those before the last boundary, but not before its
    length."""
    end = now // spec.slide * spec.slide
    start = end - spec.length
    bounds = _bounds(spec.bounds, start, end)
    return [row + bounds for timestamp, row in tuples if start <= timestamp < end]


def _session_content(spec: SessionWindow, tuples: Sequence[Stamped], now: int) -> list[Row]:
    """The sessions that have ended, each for as long as its gap."""
    held: list[Row] = []
    for session in _sessions(spec, tuples, now):
        end = session[-1].timestamp + spec.gap
        if end <= now < end + spec.gap:
            bounds = _bounds(spec.bounds, session[0].timestamp, end)
            held += [row + bounds for _, row in session]
    return held


def _sessions(
    spec: SessionWindow, tuples: Sequence[Stamped], now: int | None = None
) -> list[list[Stamped]]:
    """The sessions of all tuples up to now. NULL is a key like any other."""
    found: list[list[Stamped]] = []
    last: dict[Row, list[Stamped]] = {}  # of each key the session that came last
    for one in sorted(tuples, key=lambda t: t.timestamp):
        if now is not None and one.timestamp > now:
            break
        key = tuple(one.row[k] for k in spec.partition_by)
        session = last.get(key)
        if session is None or one.timestamp - session[-1].timestamp >= spec.gap:
            session = last[key] = []
            found.append(session)
        session.append(one)
    return found


def _bounds(bounds: Bounds | None, start: int, end: int) -> Row:
    return () if bounds is None else (_bound(bounds, start), _bound(bounds, end))


def _bound(bounds: Bounds, instant: int) -> Any:
    """An instant as a value: a number, or a point in time (NULL where there is no such day)."""
    if bounds.type == BIGINT:
        return instant
    return add_interval(EPOCH, instant * bounds.resolution_us)


def turns(spec: WindowSpec, tuples: Sequence[Stamped]) -> Iterator[int]:
    """The instants at which a tuple enters or leaves; of a Rows window, all that could be."""
    match spec:
        case RowsWindow():
            yield from (t.timestamp for t in tuples)
        case TimeWindow():
            for t in tuples:
                yield from _time_turns(spec, t.timestamp)
        case HopWindow():
            for t in tuples:  # the boundaries of all windows that it is in, and the one behind
                first = t.timestamp // spec.slide + 1
                last = (t.timestamp + spec.length) // spec.slide + 1
                yield from (e * spec.slide for e in range(first, last + 1))
        case SessionWindow():
            for session in _sessions(spec, tuples):
                end = session[-1].timestamp + spec.gap
                yield from (end, end + spec.gap)


def _time_turns(spec: TimeWindow, timestamp: int) -> Iterator[int]:
    enters = -(-timestamp // spec.slide) * spec.slide  # the first boundary from here on
    if spec.length is None:
        yield enters
        return
    # the first boundary at which the tuple is more than `length` old
    leaves = ((timestamp + spec.length) // spec.slide + 1) * spec.slide
    if enters < leaves:
        yield from (enters, leaves)
