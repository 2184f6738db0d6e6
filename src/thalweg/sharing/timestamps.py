"""Timestamp columns of a core's leaves, and differences of two of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from thalweg.plan.expr import Call, Cast, Col, Expr, Value
from thalweg.plan.types import BIGINT, INTEGER, TIMESTAMP
from thalweg.sharing.core import Core
from thalweg.sharing.ranges import Bound

EPOCH = datetime(1970, 1, 1)


def timestamp_columns(core: Core) -> list[tuple[Col, int] | None]:
    """By leaf: the timestamp's column and how many units its 1 is; None where there is none."""
    found: list[tuple[Col, int] | None] = []
    for stream, begin in zip(core.streams, core.offsets, strict=False):
        place = stream.timestamp_index
        if place is None or stream.timestamp_type not in (INTEGER, BIGINT, TIMESTAMP):
            found.append(None)
            continue
        scale = 1 if stream.timestamp_type == TIMESTAMP else stream.resolution_us
        found.append((Col(begin + place, stream.fields[place].type), scale))
    return found


def timestamp_difference(expr: Expr) -> tuple[Col, Col] | None:
    """The two columns of `x - y`, where they could be timestamps."""
    match expr:
        case Call("-", (left, right), _):
            x, y = _unwidened(left), _unwidened(right)
            return (x, y) if isinstance(x, Col) and isinstance(y, Col) else None
        case _:
            return None


def _unwidened(expr: Expr) -> Expr:
    match expr:
        case Cast(Col(_, of, _) as column, to) if (of, to) == (INTEGER, BIGINT):
            return column
        case _:
            return expr


def units_of(value: Value) -> int:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    assert isinstance(value, int)
    return value


def bound_at(units: int, epoch: datetime | None) -> Bound | None:
    if epoch is None:
        return Bound(units, True)
    try:
        return Bound(epoch + timedelta(microseconds=units), True)
    except OverflowError:
        return None  # beyond all timestamps, which bounds nothing
