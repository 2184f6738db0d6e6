"""What a window holds at an instant, straight from CQL's definition.

No intervals of single tuples here: the window at τ is found by looking at all tuples up to τ.
Only `turns`, the instants at which the content can change, is by tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from thalweg.engine.arrivals import Row
from thalweg.plan.windows import RowsWindow, TimeWindow, WindowSpec


class Stamped(NamedTuple):
    """A tuple of a stream; sequences of them are in the stream's order."""

    timestamp: int
    row: Row


def content(spec: WindowSpec, tuples: Sequence[Stamped], now: int) -> list[Row]:
    if isinstance(spec, TimeWindow):
        return _time_content(spec, tuples, now)
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


def turns(spec: WindowSpec, tuples: Iterable[Stamped]) -> Iterator[int]:
    """The instants at which a tuple enters or leaves; of a Rows window, all that could be."""
    for timestamp, _ in tuples:
        if isinstance(spec, RowsWindow):
            yield timestamp
            continue
        enters = -(-timestamp // spec.slide) * spec.slide  # the first boundary from here on
        if spec.length is None:
            yield enters
            continue
        # the first boundary at which the tuple is more than `length` old
        leaves = ((timestamp + spec.length) // spec.slide + 1) * spec.slide
        if enters < leaves:
            yield from (enters, leaves)
