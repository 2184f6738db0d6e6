"""Which rows of a base stream pass for a tolerance, and when: by looking at all rows of a key.

A row passes if it is the first of its key, or if its divergence from the last one that passed
exceeds the tolerance. By age, rows wait: when the first one that is held back is as old as the
tolerance, the newest of those before that instant passes, stamped with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from thalweg.engine.arrivals import Arrival, Row
from thalweg.engine.reference.windows import Stamped
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation
from thalweg.plan.nodes import Tolerant
from thalweg.plan.types import DOUBLE

Passed = tuple[int, Arrival]  # from this instant on


def passed(node: Tolerant, arrivals: Sequence[Arrival]) -> list[Passed]:
    """In the order of the stream that they make: by instant, then by position."""
    by_key: dict[Row, list[Arrival]] = {}
    for arrival in arrivals:
        by_key.setdefault(tuple(arrival.row[k] for k in node.per), []).append(arrival)
    found = [one for rows in by_key.values() for one in _of_key(node, rows)]
    return sorted(found, key=lambda one: (one[0], one[1].position))


def held(found: Sequence[Passed], node: Tolerant, before: int) -> list[Passed]:
    """What passes from an instant on, and of each key the row that passed last before."""
    last: dict[Row, Passed] = {}
    for one in found:
        if one[0] < before:
            last[tuple(one[1].row[k] for k in node.per)] = one
    return [one for one in found if one[0] >= before or one in last.values()]


def stamped(found: Sequence[Passed]) -> list[Stamped]:
    return [Stamped(instant, arrival.row) for instant, arrival in found]


def _of_key(node: Tolerant, rows: Sequence[Arrival]) -> Iterator[Passed]:
    if isinstance(node.tolerance, Age):
        return _by_age(node.tolerance.instants, rows)
    return _by_divergence(_diverges(node), rows)


def _by_divergence(
    diverges: Callable[[list[Arrival], Arrival], bool], rows: Sequence[Arrival]
) -> Iterator[Passed]:
    since: list[Arrival] = []  # the last one that passed, and those behind it
    for row in rows:
        if not since or diverges(since, row):
            yield row.timestamp, row
            since = []
        since.append(row)


def _diverges(node: Tolerant) -> Callable[[list[Arrival], Arrival], bool]:
    tolerance, column = node.tolerance, node.column
    if isinstance(tolerance, ChangesSince):
        return lambda since, row: len(since) > tolerance.updates
    assert column is not None
    assert not isinstance(tolerance, Age)
    # In the column's own arithmetic: DOUBLE rounds, all others are exact.
    number: Any = float if node.schema[column].type == DOUBLE else Fraction

    def differs(since: list[Arrival], row: Arrival) -> bool:
        old, new = _number(since[0].row[column], number), _number(row.row[column], number)
        if old is None or new is None:
            return (old is None) != (new is None)
        if isinstance(tolerance, Deviation):
            margin = number(tolerance.amount)
        else:
            margin = abs(old) * number(tolerance.share)
        return bool(new < old - margin or new > old + margin)

    return differs


def _number(value: Any, number: Any) -> Any:
    """None for NULL and NaN, which differ from every number."""
    return None if value is None or value != value else number(value)


def _by_age(age: int, rows: Sequence[Arrival]) -> Iterator[Passed]:
    yield rows[0].timestamp, rows[0]
    waiting = list(rows[1:])
    while waiting:
        now = waiting[0].timestamp + age
        newest = [row for row in waiting if row.timestamp < now][-1]
        yield now, newest
        waiting = waiting[waiting.index(newest) + 1 :]
